# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VMI of this node, decided: observe -> decide -> apply.

world     what is known, and what can be done       verdict    alive, dead (with proof), or not known
decide    what to do (pure)                         status     what to say about it (pure)
orphans   which launchers are its own no more (pure)
ports     what it needs of a node's launchers
reconciler  caches and launchers in, writes out
"""
