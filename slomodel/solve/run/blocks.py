"""Blocks of steps in Algorithm 1: what ends them, and their record."""

from __future__ import annotations

from dataclasses import dataclass

from slomodel.solve.facts import conforms
from slomodel.solve.run.monitor import Monitor
from slomodel.solve.run.run_state import RunState
from slomodel.solve.stagnation.pole import PoleWatch
from slomodel.solve.stagnation.unbounded import Drift
from slomodel.solve.subroutine import AcceptedStep, BlockLimits, BlockStepper, Stepper


@dataclass(frozen=True, slots=True)
class BlocksOfRun:
    """The blocks of steps of a run whose epochs are single steps."""

    stepper: BlockStepper
    monitor: Monitor
    run: RunState
    drift: Drift
    pole: PoleWatch

    def advance(self) -> AcceptedStep | None:
        """Take a block of steps and record all but the last, which is returned; None if it is 0.

        With a callback or a display a block is a single step.
        """
        run, monitor = self.run, self.monitor
        assert run.region is not None
        most = min(run.options.max_iter, self.drift.next) - monitor.k
        limits = BlockLimits(
            *(1 if monitor.reports else most, run.epoch, run.tolerance, run.examined, self.pole)
        )
        block = self.stepper.advance(run.current, run.region, limits)
        if block is None:
            return None
        earlier = block.rows[:-1]
        if len(earlier):
            monitor.extend(earlier)
            self.pole.record_all(earlier)
        return run.accept_block(block)


def blocks_of(
    stepper: Stepper,
    monitor: Monitor,
    run: RunState,
    drift: Drift | None,
    pole: PoleWatch | None,
) -> BlocksOfRun | None:
    """The blocks of a run; None if its stepper takes single steps only."""
    if drift is None or pole is None or not conforms(stepper, BlockStepper):
        return None
    return BlocksOfRun(stepper, monitor, run, drift, pole)
