"""Tests on another machine than the archive's packages fit: models run on their kernels.

`python3 build.py test --platform TAG` is one, if an emulator runs a Python of another processor.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from compile import NO_PACKAGES
from native import FOREIGN

#: Tests that are about something else there, and why.
_LEFT_OUT = {
    "the log tells that kernels run": [
        "test_a_handler_of_the_root_shows_warnings",
        "test_the_environment_is_heeded_and_the_program_has_the_last_word",
    ],
    "metadata that were edited do not go with kernels": [
        "test_derivatives_that_lead_nowhere_are_refused",
        "test_a_sensitivity_that_is_not_found_is_nan",
        "test_an_ambiguous_name_lists_what_it_can_be",
    ],
    "its compiler is this machine's": [
        "test_the_program_of_the_benchmark_binds_what_it_reads",
        "test_a_umat_writes_capsules",
        "test_the_package_tells_the_flags",
        "test_a_host_with_symbols_of_our_names_changes_no_bit",
        "test_a_library_of_another_abi_is_refused",
    ],
    "a program of this machine starts the emulator": [
        "test_all_that_is_missing_is_named_at_once",
        "test_where_no_other_torch_can_be_had_a_line_says_why",
        "test_the_package_called_build_is_pointed_to",
        "test_it_is_installed_as_neml2_capi",
    ],
    "the emulator ends or hangs in a fork, and has mappings of its own": [
        "test_the_interpreter_exits_well_with_all_that_is_left[in globals]",
        "test_parent_and_child_of_a_fork_go_on_with_the_same_objects",
        "test_a_fork_while_other_threads_evaluate_and_the_child_evaluates",
        "test_a_child_that_leaves_by_the_front_door_frees_what_it_has",
        "test_no_byte_of_an_artifact_is_ever_mapped_as_code",
        "test_two_copies_of_the_library_do_not_meet",
    ],
    "kernels are done before another thread counts": [
        "test_other_threads_go_on_while_a_model_is_evaluated"
    ],
    "doctor finds packages of another machine first": [
        "test_doctor_says_the_same_to_people",
        "test_packages_of_another_compilation_are_found",
    ],
    "iterates to round-off are the packages'": [
        "test_newton_iterates_as_neml2_does[viscoplastic]",
        "test_newton_iterates_as_neml2_does[isotropic_hardening]",
    ],
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what an emulator, or models without packages, cannot show."""
    if not FOREIGN:
        return
    reasons = {name: reason for reason, names in _LEFT_OUT.items() for name in names}
    for item in items:
        name = item.name.partition("[")[0]
        if reason := reasons.get(item.name, reasons.get(name)):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    return (yield from _skipped_without_packages())


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    return (yield from _skipped_without_packages())


def _skipped_without_packages() -> Generator[None, object, object]:
    """Skip if a package is refused: for its machine, its instructions, or by the core alone."""
    try:
        return (yield)
    except Exception as error:
        refusals = (
            "was compiled for the ",
            "holds code for another machine",
            "No backend of this library can open compiled packages",
        )
        if FOREIGN and any(refusal in str(error) for refusal in refusals):
            pytest.skip(NO_PACKAGES)
        raise
