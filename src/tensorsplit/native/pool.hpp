// Threads that wait for work, shared by the whole process.
#pragma once

#include <cstddef>
#include <functional>

namespace tensorsplit {

// How many threads may work on one job, the caller's included.
void set_threads(std::size_t count);
std::size_t threads();

// Run `work(0)` to `work(count - 1)`, in any order, on the caller's thread and on idle ones, `most`
// in all; returns when all are done: whether other threads were free to help, if they were wanted.
// Throws what `work` threw first, when no thread works any more; then some of it may not have run.
bool run_parallel(std::size_t count, std::size_t most,
                  const std::function<void(std::size_t)>& work);

}  // namespace tensorsplit
