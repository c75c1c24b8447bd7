// bind_threads: a GPU kernel's loops over thread axes become its launch.
//
// Needs: blocks are lowered; loops bound to axes stand anywhere, one axis in several nests, also
// inside each other (a tile loaded by all threads, within what each of them does). Run serially
// such a kernel gives its answer. Ensures, for kernels of a GPU target: the bound form of
// loop/threads.h. An axis has the largest extent of its loops; loops with less get a condition;
// what stands outside of all loops over an axis and writes memory that threads share is done by
// the first thread of it, and what writes a thread's own memory by every thread. What a loop writes
// to shared memory the same in each iteration is left to the first thread as well. Where threads of
// a block read or overwrite what others wrote stands `sync cta`, reached by all of them: conditions
// are moved inside of it. So does `sync cluster` between blocks of one cluster, and, in a kernel
// that is `cooperative` or has a loop that says so, `sync grid` between all blocks. A thread's own
// memory is as small as one thread needs it. What virtual threads have in common is done once, the
// rest by each of them in turn, in unrolled loops. Shared memory whose loops no thread has is
// filled by all threads together, or by one where iterations need one another, with a remark that
// says so. Where no loop is bound, the iterations of parallel loops become threads, with a remark
// that says so; else parallel loops run in order. Errors: data that crosses blocks, threads' own
// memory, or a barrier where threads take different ways; an extent that the kernel's dims do not
// tell. Why here: the loops' extents are still those of the schedule, and indices have all their
// dimensions, from which it is read which thread touches what.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module BindThreads(const Module& module, const PassContext& context);

}  // namespace tenon
