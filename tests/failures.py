# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with machines, nodes and the control plane, and the test that shows what comes of it on real parts.

Data only; tests/controlplane/test_failures.py holds it against the tests. A test is `file::name`, of pytest or, in
extensions/molecule, the name of a task. What is not built is refused by name, and that is what its row shows.
"""

from __future__ import annotations

E2E = "tests/e2e"
API = "tests/controlplane/virt_api"
LIFECYCLE = f"{E2E}/test_lifecycle.py"
INSTANCES = f"{E2E}/test_instances.py"
FAULTS = f"{E2E}/test_faults.py"
AWAY = f"{E2E}/test_virt_handler_away.py"
PARTITION = f"{E2E}/test_partition.py"
CIRROS = f"{E2E}/test_vm_cirros.py"
MALFORMED = f"{E2E}/test_malformed.py"
STARTS = f"{E2E}/test_start_failures.py"
PROBES = f"{E2E}/test_probes.py"
PODS = f"{E2E}/test_control_plane_pods.py"
REAL = f"{API}/test_real_api.py"
MOLECULE = "extensions/molecule/control_plane/side_effect.yml"
CORPUS = f"{API}/test_real_corpus.py"
REFUSED = f"{CORPUS}::test_each_malformed_machine_is_refused_with_field_and_remedy_and_nothing_is_stored"
UNSAID = f"{API}/test_real_corpus_of_changes.py::test_what_a_cluster_s_configuration_cannot_say_is_refused"
DATA_VOLUMES = "tests/controlplane/virt_controller/test_real_data_volumes.py"

RUNS: dict[str, tuple[str, ...]] = {
    "a guest that listens is asked to go": (
        f"{INSTANCES}::test_a_guest_that_is_asked_to_go_has_succeeded_within_its_grace_period",
    ),
    "a guest that does not listen is asked to go": (
        f"{LIFECYCLE}::test_a_guest_that_ignores_the_power_button_is_ended_when_its_grace_period_is_over",
    ),
    "the Pod of an instance is deleted": (f"{INSTANCES}::test_an_instance_whose_pod_is_deleted_has_ended",),
    "the Pod of a machine that is always to run is deleted": (
        f"{LIFECYCLE}::test_a_machine_whose_pod_is_deleted_gets_another_instance",
    ),
    "a person deletes the instance of a machine that is always to run": (
        f"{CIRROS}::test_deleting_the_instance_restarts_the_vm",
    ),
    "a guest powers off again and again": (
        f"{LIFECYCLE}::test_a_guest_that_powers_off_is_started_again_each_time_where_it_is_always_to_run",
    ),
    "a run succeeds where failures are run again": (
        f"{LIFECYCLE}::test_a_run_that_succeeded_is_taken_away_where_failures_are_run_again_and_stays_away",
    ),
    "a run fails where failures are run again": (
        f"{LIFECYCLE}::test_a_run_whose_launcher_is_killed_has_failed_and_says_so_and_is_run_again",
    ),
    "the claim of a stopped machine is deleted and made anew": (
        f"{INSTANCES}::test_a_machine_whose_claim_is_made_anew_stays_stopped_until_somebody_starts_it",
    ),
    "a run succeeds that is to run once, or by hand": (
        f"{LIFECYCLE}::test_a_run_that_succeeded_is_kept_where_a_person_is_to_start_the_next",
        f"{LIFECYCLE}::test_what_has_ended_stays_so",
    ),
    "a run fails that is to run once, or by hand": (
        f"{LIFECYCLE}::test_a_run_whose_qemu_is_killed_has_failed_and_is_kept_where_it_was_to_run_once",
        f"{FAULTS}::test_a_vm_whose_qemu_is_killed_follows_its_run_strategy",
    ),
    "a launcher fails at once, and its template is mended": (
        f"{STARTS}::test_a_machine_whose_launcher_fails_runs_when_its_template_is_mended",
    ),
    "a launcher fails again and again, and is stopped while it waits": (
        f"{STARTS}::test_a_machine_whose_launcher_fails_is_tried_ever_less_often_until_somebody_stops_it",
    ),
    "a launcher is to outlive its failure": (REFUSED,),
    "a machine is deleted without its instance": (
        f"{CIRROS}::test_orphan_delete_leaves_the_instance_and_a_new_vm_adopts_it",
    ),
    "no node has room": (f"{STARTS}::test_a_machine_that_no_node_has_room_for_runs_when_it_asks_for_less",),
    "no node is selected": (f"{MALFORMED}::test_what_kubernetes_says_of_a_pod_is_said_by_the_vm",),
    "a claim is missing": (f"{E2E}/test_claims.py::test_a_disk_on_a_claim_is_waited_for_and_outlives_the_run",),
    "an image is missing": (f"{STARTS}::test_a_machine_without_its_image_waits_for_it",),
    "a DataVolume fails": (f"{DATA_VOLUMES}::test_a_disk_is_filled_before_its_machine_starts_and_cdi_comes_and_goes",),
    "somebody does not wait for a long grace period": (
        f"{LIFECYCLE}::test_nobody_who_is_in_a_hurry_waits_for_a_grace_period",
        f"{REAL}::test_restart_and_stop_of_what_runs",
    ),
    "a guest's reboot is to end its run": (f"{LIFECYCLE}::test_a_reboot_that_is_to_end_the_run_does",),
    "a guest panics in front of a device for that": (
        f"{LIFECYCLE}::test_a_kernel_that_panics_fails_its_run_and_says_so",
        f"{LIFECYCLE}::test_a_run_that_a_panic_has_failed_is_run_again_where_failures_are",
    ),
    "a watchdog expires": (
        f"{LIFECYCLE}::test_a_watchdog_that_expires_fails_the_run_or_has_the_guest_boot_again_in_its_pod",
    ),
    "a Secret of user data is missing": (
        f"{MALFORMED}::test_a_secret_that_is_missing_is_told_by_the_vm_until_it_is_there",
    ),
    "a guest is not alive any more": (
        f"{PROBES}::test_a_run_ends_when_its_guest_answers_no_more",
        f"{PROBES}::test_a_guest_is_ready_while_it_answers_and_its_run_ends_when_it_is_not_alive",
    ),
    "a paused guest does not answer": (
        f"{PROBES}::test_a_guest_that_is_paused_is_not_ended_by_its_probe_and_one_that_goes_on_is",
    ),
    "QEMU takes long to appear": (f"{LIFECYCLE}::test_a_qemu_that_takes_long_to_answer_is_waited_for",),
    "one of a set ends, or loses its Pod": (
        f"{E2E}/test_replica_set.py::test_what_ceases_to_count_is_replaced_unless_the_set_is_paused",
    ),
}

NODES: dict[str, tuple[str, ...]] = {
    "virt-handler's Pod is deleted, QEMU is killed before the next, a launcher cannot be reached": (
        f"{AWAY}::test_a_node_without_virt_handler_gets_no_machines_and_what_ends_there_is_told",
    ),
    "virt-handler is cut off from the API server": (
        f"{AWAY}::test_a_virt_handler_that_is_cut_off_from_the_api_server_goes_on_by_itself_when_it_is_not",
    ),
    "virt-handler has been silent for long": (
        f"{AWAY}::test_a_node_whose_virt_handler_hangs_gets_no_more_machines_until_another_has_come",
    ),
    "a node is cut off, and a launcher's Pod is deleted by force": (
        f"{PARTITION}::test_a_pod_deleted_by_force_while_its_node_is_cut_off_starts_no_second_guest",
    ),
    "a node is off, and somebody says so": (
        f"{PARTITION}::test_a_node_that_is_off_and_said_to_be_gives_its_vm_back_once",
    ),
    "a kubelet starts anew, a device plugin's socket is removed": (
        f"{AWAY}::test_a_node_offers_its_devices_again_when_its_kubelet_has_started_anew",
        f"{FAULTS}::test_the_guest_counts_on_while_a_part_is_killed",
    ),
    "a virt-handler is asked again and again": (
        f"{INSTANCES}::test_who_asks_a_node_again_and_again_leaves_nothing_behind",
    ),
    "a node writes of another's machines": (
        "tests/controlplane/policies/test_policies.py::test_a_node_says_only_what_is_its_to_say_of_its_machines",
    ),
}

LAUNCHERS: dict[str, tuple[str, ...]] = {
    "a launcher is killed": (
        f"{LIFECYCLE}::test_a_run_whose_launcher_is_killed_has_failed_and_says_so_and_is_run_again",
    ),
    "QEMU is killed": (
        f"{LIFECYCLE}::test_a_run_whose_qemu_is_killed_has_failed_and_is_kept_where_it_was_to_run_once",
    ),
    "libvirtd is killed": (
        f"{FAULTS}::test_the_guest_counts_on_while_a_part_is_killed",
        f"{INSTANCES}::test_a_guest_is_operated_as_before_when_its_libvirtd_was_killed",
    ),
    "a disk cannot be verified": (f"{MALFORMED}::test_what_kubernetes_says_of_a_pod_is_said_by_the_vm",),
    "a disk is to be verified with less memory": (UNSAID,),
}

CONTROL_PLANE: dict[str, tuple[str, ...]] = {
    "the leader's Pod is deleted": (f"{PODS}::test_another_leads_when_the_leader_s_pod_is_deleted",),
    "the last Pod of a component is to be evicted": (
        f"{PODS}::test_a_drain_takes_one_at_a_time",
        "tests/integration/test_placement.py::test_that_node_can_be_drained",
    ),
    "authorities and certificates are deleted": (
        f"{PODS}::test_secrets_that_are_deleted_come_back_and_everybody_is_believed_meanwhile",
        f"{REAL}::test_deleted_secrets_are_made_anew_while_the_old_pair_serves_on",
    ),
    "clients of the API server are to ask less often": (UNSAID,),
    "a node is kept for critical add-ons": (
        f"{PODS}::test_a_node_that_is_kept_for_critical_addons_keeps_the_control_plane",
    ),
    "everything is to be removed while machines run": (
        f"{MOLECULE}::A cluster with another KubeVirt, with a newer version, and with VMs is refused",
    ),
}

ROWS = RUNS | NODES | LAUNCHERS | CONTROL_PLANE
