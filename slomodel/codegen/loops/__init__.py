"""Loop nests between the schedule and the text of a C-like target.

nest, construct, steps          the loop form, and its construction from a program
planning                        the program of an entry, after rearrangements of its graph:
    layouts, short_axes, roots         arrays with a long last axis; inverse roots
    hoisting, index_pieces, runs       work moved out of loops; index data that are slices
    angles, correlations               sums over pairs, adjoints of convolutions
separated, collected, assembled sums over pairs by sides; slices put together
fusion, regions, axis_reads     which computations share a loop; `sinking` into later loops
axis_pieces, row_parts          parts of an axis, or of the rows of a masked matrix
affine_steps, scalars, log_sums recurrences: affine steps, small graphs, log-sum-exps
access, pointers, workspace     where elements and arrays lie in memory
names, text, plain              what printers share; the text of any nest
"""
