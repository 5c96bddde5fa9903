"""Runs a program that a model wrote in a child process of its own. Used by the agent and by people's own experiments.

Covered now: the child is forked from an interpreter that was started with an empty environment before any
secret was loaded; it holds one socket and no other descriptor, gets bounded memory, CPU time, file size and
descriptors, may not gain privileges, and dies with the worker. Whatever it sends is bounded in size before
memory is spent on it, decoded as plain data and images (nothing is ever unpickled), and cannot do more to the
worker than end its own experiment. Wall-clock, output, calls and pixels are bounded by the worker. What a
program starts is killed with it, but a process that stopped the zygote would hold up other experiments.

Not covered yet: the program may still read and write files, open network connections, start processes and
signal others with the rights of the worker's user. `jail.restrict` is where those doors are to be shut.
"""
