# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cautions import cautions

CACHED, DEPTH, SHARED, REPEATED = "page cache", "the depth is 1", "the same blocks: set offset_increment", "set randrepeat=0"
DRAWN = "A startdelay that is a range is drawn by fio"
VERIFIED, PARTED = "are those of verify", "The sections that write are separated by a stonewall"


@pytest.mark.parametrize(
    ("job", "repeat", "words"),
    [
        ({"rw": "read", "bs": "1m", "direct": 1}, 1, []),
        ({"rw": "read", "bs": "1m"}, 1, [CACHED]),
        ({"rw": "write", "bs": "1m"}, 1, []),
        ({"rw": "read", "bs": "1m", "buffered": 0}, 1, []),
        ({"rw": "randrw", "ioengine": "libaio", "iodepth": 8, "randrepeat": 0}, 3, [CACHED, DEPTH]),
        ({"rw": "randwrite", "ioengine": "libaio", "iodepth": 8, "direct": 1}, 1, []),
        ({"rw": "randwrite", "ioengine": "libaio", "iodepth": 8, "direct": 1}, 2, [REPEATED]),
        ({"rw": "randwrite", "direct": 1, "randrepeat": 0, "randseed": 7}, 2, [REPEATED]),
        ({"rw": "write", "direct": 1, "numjobs": 4}, 2, [SHARED]),
        ({"rw": "write", "direct": 1, "numjobs": 4, "offset_increment": "1g"}, 2, []),
        ({"rw": "randwrite", "direct": 1, "numjobs": 4, "randrepeat": 0}, 2, []),
        ({"rw": "randread", "ioengine": "null"}, 2, []),
        ({"rw": "write", "verify": "crc32c"}, 1, [VERIFIED]),
        ({"rw": "write", "startdelay": "1-5"}, 1, [DRAWN]),
        ({"rw": "write", "verify": "crc32c", "do_verify": 0}, 1, []),
        ({"rw": "rw", "direct": 1, "verify": "crc32c"}, 1, []),
        ({"jobs": [{"name": "a", "rw": "write"}, {"name": "b", "rw": "write", "stonewall": True}]}, 1, [PARTED]),
        ({"jobs": [{"name": "a", "rw": "write"}, {"name": "b", "rw": "read", "direct": 1, "stonewall": True}]}, 1, []),
        ({"global": {"direct": 1}, "jobs": [{"name": "a", "rw": "write"}, {"name": "b", "rw": "read", "direct": 0}]}, 1, [CACHED]),
    ],
)
def test_what_a_reader_would_not_expect_is_said(job, repeat, words):
    found = cautions(read_job(job, "cell"), repeat)
    assert len(found) == len(words)
    for sentence, word in zip(found, words):
        assert word in sentence
