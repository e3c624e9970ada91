# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that keep the promises, as data, and the proof that each of them is missed when it is taken out.

A guard that no test misses is not there: somebody will remove it and everything stays green. So every guard is listed
here with the file, the line as it is, the line without it and why it is there; `make guards` takes them out one at a
time in a copy of the tree and requires that the tests named beside it go red.

guard: what an entry is. One module of entries per area of the control plane. listed: all of them. copy: a tree to
break. tests_run: pytest in it, quickly. run: breaks it and judges. test_guards: no entry is stale; cheap, so it is
among the unit tests.
"""
