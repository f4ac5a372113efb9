"""Algorithm 1: the epoch loop, its records, checkpoints and results.

driver, blocks                  the epochs of a subroutine; blocks of compiled steps
run_state, history, monitor     a run so far; its record, callback and display (`live`)
continuation                    lower points beyond an end, and where a run creeps:
    stationary_point, saddle_escape    saddles, inflections, plateaus
    kinks, kinks_in_sets               kinks, and kinks in polyhedra
    valleys, second_descent            curved valleys, another descent from the start
ending, message                 how a run ended, judged and in words
solution, summary, explanation  the result, as text
checkpoint, snapshot            stored runs: `saved_classes` in files, `resume` from them
multistart, hopping, processes  several runs; `multistart_summary`; one run of several `parts`
"""
