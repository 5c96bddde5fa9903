"""Run a program that a model wrote in a jailed process. Used by the agent and by people's own experiments.

The child is forked from an interpreter that was started with an empty environment before any secret was loaded. Before
the program's first line, while there is one thread, it loses every privilege and gets the layers of `jail`:

1. Landlock: it reads the standard library, installed packages and shared libraries, writes in its own folder, and opens
   nothing else: no code or state of ours, no home folder, no /proc, no /etc.
2. seccomp, an allow-list: no new process or program, no socket, no signal to another process, no change of owner, mode,
   times or names, no links, no other process's memory, no shared memory, no io_uring.
3. rlimits and the zygote's watch: memory, processor time, files in size and number, descriptors, threads.
4. User, network, process and ipc namespaces where the kernel allows them; nothing relies on them.

One socket leads out. Everything that comes from it is bounded in size before memory is spent on it and decoded as plain
data and images (nothing is ever unpickled); it can do no more to the worker than end its own experiment. Where a
required layer is missing no program runs. Afterwards no process and no file is left, also when the worker is killed.

Not covered: a program can see whether a path exists and its size and owner, the kernel's version, memory and load, and
that other experiments take time. It can read all that lies in the installed packages. A hole in the kernel, or in the
processor, is a hole here. Between two looks of the watch (50 ms) it may make more threads or files than it may keep.
The functions of `system` and `tools` get plain data of bounded size, and any text; they have to check it.
"""
