# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the proofs on real devices share: packing, building devices, judging targets, carrying out orders."""
