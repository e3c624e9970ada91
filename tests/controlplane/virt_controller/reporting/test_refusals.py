# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user can do about a refused write, by the API server's own words."""

from __future__ import annotations

import pytest

from controlplane.engine.errors import ApiError, Forbidden, Invalid, Unavailable
from controlplane.virt_controller.reporting.refusals import explain_refusal

POD = 'cannot create Pod default/virt-launcher-web-1: pods "virt-launcher-web-1" is forbidden: '


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (
            "exceeded quota: team, requested: limits.memory=2Gi, used: limits.memory=7Gi, limited: limits.memory=8Gi",
            "raise the namespace's ResourceQuota, or delete something that it counts",
        ),
        (
            "failed quota: team: must specify limits.cpu for: compute",
            "set in domain.resources what the namespace's ResourceQuota asks for",
        ),
        (
            "[maximum cpu usage per Container is 500m, but limit is 1, maximum memory usage per Container is 1Gi]",
            "change domain.resources, or the namespace's LimitRange",
        ),
        ("cpu max limit to request ratio per Container is 2, but provided ratio is 10", "the namespace's LimitRange"),
        ("no PriorityClass with name important was found", "create it, or correct priorityClassName"),
        (
            'violates PodSecurity "restricted:latest": privileged (container "x" must not ...)',
            "the cluster's mutating webhooks",
        ),
        (
            "unable to create new content in namespace default because it is being terminated",
            "nothing can be created in a namespace that is being deleted",
        ),
        (
            'User "system:serviceaccount:kubevirt:virt-controller" cannot create resource "pods" in API group ""',
            "apply the control plane's manifests again",
        ),
        ("a policy", "check the namespace's ResourceQuota, and the permissions of virt-controller's account"),
    ],
)
def test_a_403_has_the_remedy_of_its_cause(words: str, remedy: str) -> None:
    server, _semicolon, shown = explain_refusal(Forbidden(POD + words)).rpartition("; ")
    assert server == POD + words
    assert remedy in shown


@pytest.mark.parametrize(
    ("error", "made_of", "remedy"),
    [
        (
            Invalid(
                'spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal to cpu limit'
            ),
            "spec.template",
            "set both in domain.resources, or change the default limit of the namespace's LimitRange",
        ),
        (Invalid("spec.subdomain: Invalid value"), "spec.template", "correct spec.template"),
        (Invalid("status.phase: Unsupported value"), "", "compare the installed CRDs with the control plane's version"),
        (Unavailable("no answer"), "", ""),
    ],
)
def test_a_refused_content_has_the_remedy_of_its_cause(error: ApiError, made_of: str, remedy: str) -> None:
    assert explain_refusal(error, made_of=made_of) == (f"{error}; {remedy}" if remedy else str(error))
