# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab as a Kubernetes cluster: what runs in it, how it starts, how it is, how it is broken on purpose.

lab.py is the front door; start.py is one run of `up`, start_nodes.py the nodes' part of it; control_plane.py
and node.py are command lines."""
