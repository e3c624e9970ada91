# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of machines that the leader of virt-controller exposes, with KubeVirt's names where they match.

machines: the state of each machine, read from the caches at each scrape. transitions: durations of phases, counted as
they change. The processes' own metrics are in controlplane.process.metrics.
"""
