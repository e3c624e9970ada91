# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab as a Kubernetes cluster: its programs, start, status and injected faults.

lab.py has the public class; start.py is one run of `up`, start_nodes.py its part for the nodes; control_plane.py and
node.py have command lines."""
