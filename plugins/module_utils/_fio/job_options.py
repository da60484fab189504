# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every option and engine of fio that a job may use with the values that each may have, and why the others are refused.

A list of what is allowed: an option that is not here is refused, because what it makes fio write is not known. Values are those that fio reads in
one way, and that stay within the target and the memory of the host.

Source: ``options.c``, ``parse.c`` and ``engines/*.c`` of fio 3.33 and 3.41, ``fio --cmdhelp=all`` and ``fio --enghelp``, HOWTO of 2.1 to 3.42. fio
compares the names of options with case and without treating ``-`` and ``_`` as one (``o_match`` in ``options.h``). A number ends at the first
character that is no digit (1.5M is 1), KiB is 1000 unless ``kb_base`` is 1000, ``(`` starts a calculation, a quoted part of a pattern is the name of
a file that is read, and what follows a colon in ``mem`` is the name of a file that is written.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class Engine:
    """What an engine opens.

    :param opens: for the documentation, in a few words.
    :param past_the_block_layer: it sends commands to the disk, which do not end at a partition or volume.
    :param queues: it has several I/Os under way at a time (``iodepth``).
    :param options: its own; fio accepts them of this engine only.
    """

    opens: str
    past_the_block_layer: bool = False
    queues: bool = False
    options: frozenset[str] = frozenset()


_PRIORITIES = frozenset({"cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_hint", "cmdprio_bssplit"})
_BY_NAME = "the file name of the target, once"
_PVSYNC2 = frozenset({"hipri", "hipri_percentage", "uncached", "nowait", "atomic"})
_LIBAIO = _PRIORITIES | {"userspace_reap", "nowait", "libaio_vectored", "atomic"}
_IO_URING = _PRIORITIES | {
    *("hipri", "fixedbufs", "registerfiles", "sqthread_poll", "sqthread_poll_cpu", "nonvectored", "uncached", "nowait", "force_async", "atomic"),
    *("readfua", "writefua"),
}
_SG = frozenset({"hipri", "readfua", "writefua", "sg_write_mode", "stream_id"})

#: Engines that do their I/O through the file name that the guard has examined, and nowhere else.
ENGINES: t.Mapping[str, Engine] = {
    "sync": Engine(_BY_NAME),
    "psync": Engine(_BY_NAME),
    "vsync": Engine(_BY_NAME),
    "pvsync": Engine(_BY_NAME),
    "pvsync2": Engine(_BY_NAME, options=_PVSYNC2),
    "libaio": Engine(_BY_NAME, queues=True, options=_LIBAIO),
    "io_uring": Engine(_BY_NAME, queues=True, options=_IO_URING),
    "posixaio": Engine(_BY_NAME, queues=True),
    "mmap": Engine("the file name of the target, mapped into memory", options=frozenset({"thp"})),
    "null": Engine("nothing: no I/O is done", queues=True),
    # SG_IO on a partition reaches the disk: the offset of the partition is not added to the address in the command.
    "sg": Engine("the disk behind the file name, with SCSI commands", past_the_block_layer=True, queues=True, options=_SG),
}

_REMOTE = "its data is on a server, not on a target of this host that the guard could examine"
_NETWORK = "it measures a network, not storage"
_FILES = "it measures how a file system creates, changes or removes files, and does no I/O on the target"
_MEMORY = "it maps persistent memory that is not a block device of the host"
_PAST = "it sends commands to a character device or a namespace, past the block layer, where the guard sees no holders, mounts and partitions"

#: Engines of fio 3.33 to 3.42 that a job must not use, and why.
ENGINES_WITHOUT_TARGET: t.Mapping[str, str] = {
    "rbd": "an image in a Ceph cluster is no device of this host, so nothing shows whether it contains data or is in use, and nothing keeps others out: "
    "map it (rbd map) and give its device as the target",
    **dict.fromkeys(("rados", "gfapi", "gfapi_async", "http", "nfs", "libhdfs", "libiscsi", "nbd", "dfs", "ime_psync", "ime_psyncv", "ime_aio"), _REMOTE),
    **dict.fromkeys(("net", "netsplice", "rdma"), _NETWORK),
    **dict.fromkeys(("librpma_apm_client", "librpma_apm_server", "librpma_gpspm_client", "librpma_gpspm_server"), _NETWORK),
    **dict.fromkeys(("filecreate", "filestat", "filedelete", "falloc", "ftruncate", "dircreate", "dirstat", "dirdelete"), _FILES),
    "e4defrag": "it moves the blocks of files between each other, and does no I/O on the target",
    **dict.fromkeys(("dev-dax", "libpmem", "pmemblk"), _MEMORY),
    **dict.fromkeys(("io_uring_cmd", "xnvme", "libblkio", "libzbc"), _PAST),
    "mtd": "raw flash memory is a character device, which is not a target",
    "libcufile": "it moves data between the target and the memory of a GPU, with a library that the guard cannot check",
    "cpuio": "it uses the CPU and does no I/O",
    "exec": "it runs a command on the host",
    "cpp_null": "it is an example of fio's source for engines in C++, and does no I/O: null is one that fio has",
    "splice": "its I/O goes through a pipe, so that the pipe is measured too",
    **dict.fromkeys(("windowsaio", "solarisaio"), "it does not exist on Linux"),
}

#: An alias is its option in everything that is checked. ``wait_for_previous`` was an option of its own in fio 2, as ``log_unix_epoch`` was until 3.36.
ALIASES: t.Mapping[str, str] = {
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "blockalign": "ba",
    "data_placement": "dataplacement",
    "disable_bw": "disable_bw_measurement",
    "fdp_pli": "plids",
    "fdp_pli_select": "plid_select",
    "fileoffset": "offset",
    "fill_fs": "fill_device",
    "io_limit": "io_size",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "iodepth_batch_submit": "iodepth_batch",
    "iomem": "mem",
    "log_max_value": "log_window_value",
    "mem_align": "iomem_align",
    "nr_files": "nrfiles",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "readwrite": "rw",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_interval": "steadystate_check_interval",
    "ss_ramp": "steadystate_ramp_time",
    "timeout": "runtime",
}

#: Options without a value (``FIO_OPT_STR_SET``). ``true`` for any other option is written as 1, ``false`` as 0.
FLAGS = frozenset(
    {
        *("bs_unaligned", "blocksize_unaligned", "exitall", "exitall_on_error", "fixedbufs", "group_reporting", "hipri", "new_group", "norandommap"),
        *("refill_buffers", "registerfiles", "sqthread_poll", "stonewall", "thread", "time_based", "userspace_reap", "verify_only", "wait_for_previous"),
        "zero_buffers",
    }
)

#: Options that are 0 or 1 and must have a value (``FIO_OPT_BOOL``).
BOOLEANS = frozenset(
    {
        *("serialize_overlap", "fill_device", "file_append", "bs_is_seq_rand", "randrepeat", "softrandommap", "allrandrepeat", "direct", "buffered"),
        *("overwrite", "do_verify", "verify_fatal", "experimental_verify", "verify_state_save", "trim_verify_zero", "read_beyond_wp"),
        *("ignore_zone_limits", "rate_ignore_thinktime", "latency_run", "invalidate", "create_serialize", "create_fsync", "create_on_open", "pre_read"),
        *("end_fsync", "fsync_on_close", "block_error_percentiles", "stats", "scramble_buffers", "dedupe_global", "clat_percentiles"),
        *("lat_percentiles", "slat_percentiles", "disk_util", "gtod_reduce", "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement"),
        *("error_dump", "sprandom", "recover_zbd_write_error", "verify_write_sequence", "verify_header_seed"),
    }
)

#: What moves the start, the end or the number of what is written: :mod:`extent` computes it.
COMPUTED = frozenset(
    {
        *("rw", "bs", "ba", "bsrange", "bssplit", "bs_unaligned", "bs_is_seq_rand", "size", "filesize", "fill_device", "file_append"),
        *("nrfiles", "openfiles", "offset", "offset_increment", "offset_align", "numjobs", "percentage_random", "random_distribution", "random_generator"),
        *("zonemode", "zonesize", "zonecapacity", "zonerange", "zoneskip", "sprandom", "kb_base"),
    }
)

#: What changes neither the file, nor its range, nor the number of processes. ``verify_state_save`` (on by default) writes a file
#: beside the other files of the run: fio works in a private folder.
HARMLESS = frozenset(
    {
        # a log of I/O, which replay.py reads and writes anew
        "read_iolog",
        # amount, order and time of I/O
        *("io_size", "number_ios", "num_range", "loops", "runtime", "ramp_time", "startdelay", "time_based", "rw_sequencer", "rwmixread", "rwmixwrite"),
        *("percentage_sequential", "rwmixcycle", "randrepeat", "allrandrepeat", "randseed", "norandommap", "softrandommap", "use_os_rand"),
        *("spr_num_regions", "spr_op", "file_service_type", "iodepth", "iodepth_batch", "iodepth_batch_complete_min", "iodepth_batch_complete_max"),
        *("iodepth_low", "serialize_overlap", "io_submit_mode", "thinktime", "thinktime_spin", "thinkcycles", "thinktime_blocks", "thinktime_blocks_type"),
        *("thinktime_iotime", "rate", "rate_min", "rate_iops", "rate_iops_min", "rate_process", "rate_cycle", "rate_ignore_thinktime", "max_latency"),
        *("latency_target", "latency_window", "latency_percentile", "latency_run", "flow", "flow_id", "flow_watermark", "flow_sleep"),
        *("steadystate", "steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval"),
        *("read_beyond_wp", "max_open_zones", "job_max_open_zones", "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency"),
        "recover_zbd_write_error",
        # how the file is opened, laid out and synchronised
        *("ioengine", "direct", "buffered", "atomic", "sync", "fsync", "fdatasync", "end_fsync", "end_syncfs", "fsync_on_close", "sync_file_range"),
        *("write_barrier", "invalidate", "pre_read", "overwrite", "fallocate", "fadvise_hint", "create_serialize", "create_fsync", "create_on_open"),
        *("write_hint", "fdp", "dataplacement", "plids", "plid_select"),
        # what is in the buffers, and whether it is read back
        *("mem", "iomem_align", "hugepage-size", "lockmem", "zero_buffers", "refill_buffers", "scramble_buffers", "buffer_pattern"),
        *("buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage", "dedupe_mode", "dedupe_working_set_percentage", "dedupe_global"),
        *("verify", "do_verify", "verifysort", "verifysort_nr", "verify_interval", "verify_offset", "verify_pattern", "verify_pattern_interval"),
        *("verify_fatal", "verify_async", "verify_async_cpus", "verify_backlog", "verify_backlog_batch", "verify_only", "verify_state_save"),
        *("verify_write_sequence", "verify_header_seed", "verify_policy", "experimental_verify"),
        *("trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch"),
        # processes and CPUs; numjobs, their number, is computed
        *("thread", "nice", "prio", "prioclass", "priohint", "cpumask", "cpus_allowed", "cpus_allowed_policy", "numa_cpu_nodes", "numa_mem_policy"),
        *("wait_for", "wait_for_previous", "stonewall", "new_group", "exitall", "exit_what", "exitall_on_error", "continue_on_error", "ignore_error"),
        # what is reported
        *("description", "group_reporting", "stats", "disk_util", "error_dump", "log_entries", "job_start_clock_id"),
        *("block_error_percentiles", "clat_percentiles", "lat_percentiles", "slat_percentiles", "percentile_list", "significant_figures"),
        *("gtod_reduce", "gtod_cpu", "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement", "unified_rw_reporting", "unit_base"),
        "clocksource",
    }
)

#: What shapes the logs of which the collection makes its series. A job that sets one of them is run without it.
LOGS = frozenset(
    {
        *("per_job_logs", "log_avg_msec", "log_hist_msec", "log_hist_coarseness", "log_window_value", "log_offset", "log_prio", "log_issue_time"),
        *("log_compression", "log_compression_cpus", "log_store_compressed", "log_unix_epoch", "log_alternate_epoch", "log_alternate_epoch_clock_id"),
        *("bwavgtime", "iopsavgtime", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"),
    }
)

#: Options of the profile tiobench (``profiles/tiobench.c``), which fio takes in every job file and which do nothing there.
OF_PROFILES = frozenset({"threads", "block", "numruns", "dir"})

_OWNED_BY_THE_GUARD = "the target defines the file that the job uses"
_RUNS_COMMANDS = "it runs a command on the host"
_WRITES_FILES = "it reads or writes files of its own choice"
_OTHER_HOST = "it belongs to an engine that is not supported"
_BELONGS_TO_A_LOG = "it belongs next to read_iolog in the same section"
_NOT_OF_A_LOG = "read_iolog takes one log of fio, and reads all of it"

#: Why an option is refused, by its canonical name.
REFUSED: t.Mapping[str, str] = {
    **dict.fromkeys(("filename", "directory", "filename_format", "unique_filename", "opendir", "name"), _OWNED_BY_THE_GUARD),
    "filetype": _OWNED_BY_THE_GUARD,
    **dict.fromkeys(("include", "profile"), "everything that runs must be in the job itself"),
    **dict.fromkeys(("exec_prerun", "exec_postrun", "program", "arguments", "grow_pid", "grace_time", "std_redirect"), _RUNS_COMMANDS),
    "write_iolog": _WRITES_FILES,
    **dict.fromkeys(("eta", "eta-newline", "eta-interval", "minimal", "status-interval", "section", "client"), "it belongs to the command line of fio"),
    **dict.fromkeys(("verify_state_load", "verify_dump", "dp_scheme", "lockfile", "output", "output-format"), _WRITES_FILES),
    **dict.fromkeys(("aux-path", "aux_path", "donorname"), _WRITES_FILES),
    **dict.fromkeys(("replay_no_stall", "replay_scale", "replay_align", "replay_time_scale", "replay_skip"), _BELONGS_TO_A_LOG),
    **dict.fromkeys(("read_iolog_chunked", "merge_blktrace_file", "merge_blktrace_scalars", "merge_blktrace_iters"), _NOT_OF_A_LOG),
    "replay_redirect": _OWNED_BY_THE_GUARD,
    **dict.fromkeys(("cgroup", "cgroup_root", "cgroup_nodelete", "cgroup_weight"), "it creates and changes control groups of the host"),
    **dict.fromkeys(("uid", "gid"), "files are opened as the user who runs fio, as the guard has examined them"),
    **dict.fromkeys(("allow_mounted_write", "allow_file_create", "create_only", "readonly"), "the guard decides what may be written"),
    **dict.fromkeys(("unlink", "unlink_each_loop"), "the collection never removes a target"),
    **dict.fromkeys(("hostname", "port", "protocol", "proto", "listen", "pingpong", "interface", "bindname", "verb", "uri", "nfs_url"), _OTHER_HOST),
    **dict.fromkeys(("clustername", "rbdname", "pool", "clientname", "conf", "busy_poll", "touch_objects", "volume", "brick"), _OTHER_HOST),
    **dict.fromkeys(("namenode", "hdfsdirectory", "chunk_size", "chunck_size", "initiator", "cpuload", "cpumode", "cpuchunks", "cmd_type"), _OTHER_HOST),
    **dict.fromkeys(("skip_bad", "inplace", "gpu_dev_id", "gpu_dev_ids", "cuda_io", "stat_type", "md_per_io_size", "pi_act", "pi_chk"), _OTHER_HOST),
    **dict.fromkeys(("apptag", "apptag_mask", "write_mode", "verify_mode", "deac"), _OTHER_HOST),
    "target": "it belongs to one of the sections in jobs",
    **dict.fromkeys(("serverip", "direct_write_to_pmem", "busy_wait_polling", "single_instance", "hdfs_use_direct", "cont", "object_class"), _OTHER_HOST),
    **dict.fromkeys(("svcl", "no_completion_thread", "nodelay", "ttl", "window_size", "mss", "exit_on_io_done", "dummy"), _OTHER_HOST),
    **dict.fromkeys(("xnvme_be", "xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid", "xnvme_iovec"), _OTHER_HOST),
    **dict.fromkeys(("https", "http_host", "http_user", "http_pass", "http_mode", "http_verbose", "http_swift_auth_token"), _OTHER_HOST),
    **dict.fromkeys(("http_s3_key", "http_s3_keyid", "http_s3_region", "http_s3_storage_class"), _OTHER_HOST),
    **dict.fromkeys(("http_s3_sse_customer_key", "http_s3_sse_customer_algorithm"), _OTHER_HOST),
    **dict.fromkeys(sorted(OF_PROFILES), "it belongs to a profile of fio (tiobench) and has no effect in a job"),
    "ioscheduler": "it changes the block queue and does not change it back; the role block_queue does",
    "exitall_on_error": "it is always set",
}

_ENGINE_OPTIONS = frozenset().union(*(engine.options for engine in ENGINES.values()))


def canonical(option: str) -> str:
    """fio's own name of an option that may be given as an alias."""
    return ALIASES.get(option, option)


def refusal(option: str) -> str | None:
    """Why a job must not have an option; ``None`` if it may."""
    name = canonical(option)
    if name in REFUSED:
        return REFUSED[name]
    if name in COMPUTED or name in HARMLESS or name in LOGS or name in _ENGINE_OPTIONS:
        return None
    return "it is not known to this collection, so what it writes cannot be determined"


def left_out(*parts: t.Any) -> tuple[str, ...]:
    """What of the sections of a job is not sent, as sentences."""
    logs = sorted({key for part in parts if isinstance(part, dict) for key in part if isinstance(key, str) and canonical(key) in LOGS})
    return (f"{', '.join(logs)} of the job was left out: the collection records the logs of which it makes its series itself.",) if logs else ()


def needs_engine(option: str, engine: str) -> bool:
    """Whether an option belongs to engines other than the given one."""
    name = canonical(option)
    return name in _ENGINE_OPTIONS and name not in HARMLESS and name not in ENGINES[engine].options


#: fio has room for that many jobs (``REAL_MAX_JOBS``); with numjobs=0 it forks without end.
MAXIMUM_JOBS = 4096
#: The default of fs.aio-max-nr: more requests than that are not accepted by the kernel for all processes together.
MAXIMUM_DEPTH = 65536
#: Bytes of a value. fio reads a line of 4096 (fio 2) or 8192 bytes (fio 3), and takes the rest of a longer one for another line.
MAXIMUM_LENGTH = 1024

DIRECTIONS: t.Mapping[str, tuple[str, ...]] = {
    "read": ("read",),
    "randread": ("read",),
    "write": ("write",),
    "randwrite": ("write",),
    "trim": ("trim",),
    "randtrim": ("trim",),
    "rw": ("read", "write"),
    "readwrite": ("read", "write"),
    "randrw": ("read", "write"),
    "trimwrite": ("trim", "write"),
    "randtrimwrite": ("trim", "write"),
}

_SIZE = r"\d+(?:[kmgtp]b?|b)?"
_NOT_0 = r"0*[1-9]\d*(?:[kmgtp]b?|b)?"
_RANGE = rf"{_SIZE}[-:]{_SIZE}"
_SHARE = rf"{_SIZE}(?:/\d*)?"
_SHARES = rf"{_SHARE}(?::{_SHARE})*"
_PERCENT = r"\d{1,2}%|100%"
_MODES = "|".join(DIRECTIONS)
_BUFFERS = "malloc|shm|shmhuge|mmap|mmaphuge|mmapshared"

_SIZE_WORDS = "a whole number of bytes, with k, m, g, t or p for powers of 1024"
#: By canonical name: what the whole value must be, ignoring case, and how that is described.
_FORMS: t.Mapping[str, tuple[t.Pattern[str], str]] = {
    name: (re.compile(f"(?:{pattern})\\Z", re.IGNORECASE), words)
    for names, pattern, words in (
        ("size offset offset_increment io_size", rf"{_SIZE}|{_PERCENT}", f"{_SIZE_WORDS}, or a percentage from 0% to 100%"),
        ("offset_align", r"0*[1-9]\d*(?:[kmgt]b?|b)?", f"{_SIZE_WORDS}, at least 1"),
        ("filesize", rf"{_NOT_0}(?:[-:,]{_NOT_0})?", f"{_SIZE_WORDS}, at least 1, or two of them joined by '-'"),
        ("bs ba rate rate_min", rf"(?:{_SIZE})?(?:,(?:{_SIZE})?){{0,2}}", f"{_SIZE_WORDS}, one or up to three separated by commas"),
        ("bsrange", rf"{_RANGE}(?:,{_RANGE}){{0,2}}", "two sizes joined by '-', once or up to three times separated by commas"),
        ("bssplit", rf"{_SHARES}(?:,{_SHARES}){{0,2}}", "sizes with percentages, such as 4k/60:64k/40"),
        ("zonesize zonecapacity zonerange zoneskip number_ios", _SIZE, _SIZE_WORDS),
        ("kb_base", "1024", "1024: every size of the collection is a power of 1024"),
        ("mem", _BUFFERS, "malloc, shm, shmhuge, mmap, mmaphuge or mmapshared alone: the name of a file would write the buffers into a file"),
    )
    for name in names.split()
}
#: With case, because fio compares words as they are.
_WORDS: t.Mapping[str, tuple[t.Pattern[str], str]] = {
    "rw": (re.compile(rf"(?:{_MODES})(?::-?\d+[kmgKMG]?)?\Z"), f"{', '.join(sorted(DIRECTIONS))}, with or without a modifier such as :8 or :4k"),
    "zonemode": (re.compile(r"(?:none|strided|zbd)\Z"), "none, strided and zbd"),
    "ioengine": (
        re.compile(rf"(?:{'|'.join(ENGINES)})\Z"),
        f"{', '.join(sorted(ENGINES))}: the guard can only check engines that use the file name of the target",
    ),
}
#: Whole numbers and their bounds.
_BOUNDS: t.Mapping[str, tuple[int, int]] = {
    "numjobs": (1, MAXIMUM_JOBS),
    "nrfiles": (1, 2**31 - 1),
    "openfiles": (1, 2**31 - 1),
    "iodepth": (1, MAXIMUM_DEPTH),
    "iodepth_batch": (0, MAXIMUM_DEPTH),
    "iodepth_batch_complete_min": (0, MAXIMUM_DEPTH),
    "iodepth_batch_complete_max": (0, MAXIMUM_DEPTH),
    "iodepth_low": (0, MAXIMUM_DEPTH),
    "loops": (0, 2**31 - 1),
    "verify_async": (0, MAXIMUM_JOBS),
    **dict.fromkeys(("percentage_random", "rwmixread", "rwmixwrite"), (0, 100)),
    **dict.fromkeys(BOOLEANS, (0, 1)),
}
#: Other numbers, sizes, times and lists of them (fio --cmdhelp): true would be 1 of whatever the option counts.
_NUMBERS = frozenset(
    {
        *("runtime", "ramp_time", "startdelay", "num_range", "rwmixread", "rwmixwrite", "rwmixcycle", "percentage_sequential", "randseed"),
        *("spr_num_regions", "thinktime", "thinktime_spin", "thinktime_blocks", "thinktime_iotime", "thinkcycles", "rate_iops", "rate_iops_min"),
        *("rate_cycle", "max_latency", "latency_target", "latency_window", "latency_percentile", "flow", "flow_watermark", "flow_sleep"),
        *("steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval", "max_open_zones", "job_max_open_zones"),
        *("zone_reset_threshold", "zone_reset_frequency", "fsync", "fdatasync", "sync_file_range", "write_barrier", "plids", "iomem_align"),
        *("hugepage-size", "lockmem", "buffer_compress_percentage", "buffer_compress_chunk", "dedupe_percentage"),
        *("dedupe_working_set_percentage", "verifysort_nr", "verify_interval", "verify_offset", "verify_pattern_interval", "verify_backlog"),
        *("verify_backlog_batch", "trim_percentage", "trim_backlog", "trim_backlog_batch", "nice", "prio", "prioclass", "cpumask", "cpus_allowed"),
        *("numa_cpu_nodes", "verify_async_cpus", "log_compression_cpus", "gtod_cpu", "log_avg_msec", "log_hist_msec", "log_hist_coarseness"),
        *("log_entries", "log_compression", "bwavgtime", "iopsavgtime", "percentile_list", "significant_figures"),
        *("cmdprio", "cmdprio_class", "cmdprio_percentage", "hipri_percentage", "sqthread_poll_cpu", "stream_id"),
        *("flow_id", "force_async", "unit_base", "log_alternate_epoch_clock_id", "job_start_clock_id"),
    }
)
#: One for each direction; the others have exactly one.
_BY_DIRECTION = frozenset({"percentage_random"})
_PLAIN = re.compile(r"[A-Za-z0-9._:,/%+-]+\Z")
_NEGATIVE = re.compile(r"(?:^|[,:/])-")
#: A niceness, a share of the flow and a number as a pattern may be negative.
_MAY_BE_NEGATIVE = frozenset({"nice", "flow", "verify_pattern", "buffer_pattern"})


def objection(option: str, value: str) -> str | None:
    """What is wrong with the value of an option, as the end of a sentence that begins with both.

    :param option: canonical name of an option that is not refused.
    """
    if len(value.encode()) > MAXIMUM_LENGTH:
        return f"is refused: the value must not be longer than {MAXIMUM_LENGTH} bytes"
    if option == "description":
        return None
    if option == "ioengine" and value in ENGINES_WITHOUT_TARGET:
        return f"is refused: {ENGINES_WITHOUT_TARGET[value]}"
    if option in _WORDS:
        return None if _WORDS[option][0].match(value) else f"must be one of {_WORDS[option][1]}"
    allowed = _allowed_values(option, value)
    return None if allowed is None else f"is refused: the value must be {allowed}"


def is_number(option: str) -> bool:
    """Whether the values of an option are numbers, sizes or words, of which neither true nor false is one.

    :param option: canonical name.
    """
    return option in _WORDS or option in _FORMS or option in _NUMBERS or _BOUNDS.get(option, (0, 1)) != (0, 1)


def _allowed_values(option: str, value: str) -> str | None:
    """What the value must be, if it is not that."""
    if option in _FORMS and not _FORMS[option][0].match(value):
        return _FORMS[option][1]
    if option in _BOUNDS and not _is_within(value, *_BOUNDS[option], parts=3 if option in _BY_DIRECTION else 1):
        return f"a whole number from {_BOUNDS[option][0]} to {_BOUNDS[option][1]}"
    if not _PLAIN.match(value):
        return "made of letters, digits and . _ : , / % + - only, without quotes, blanks, brackets and backslashes"
    if option not in _MAY_BE_NEGATIVE and _NEGATIVE.search(value):
        return "without negative numbers"
    return None


def _is_within(value: str, low: int, high: int, *, parts: int) -> bool:
    numbers = value.split(",")
    # 00 is no other word for off: what is in effect is compared with 0.
    digits = "[01]" if high == 1 else "[0-9]{1,10}"
    return len(numbers) <= parts and all(re.match(rf"{digits}\Z", number) and low <= int(number) <= high for number in numbers)
