#include "copy.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu.hpp"
#include "pool.hpp"

namespace tensorsplit {
namespace {

// Below this size, waking a thread takes longer than it saves.
constexpr std::size_t worth_a_thread = 512 * 1024;

// The unit of work of a thread: large enough that taking one costs next to nothing, small enough
// that all threads finish at about the same time.
constexpr std::size_t smallest_piece = 128 * 1024;
constexpr std::size_t largest_piece = 2 * 1024 * 1024;
constexpr std::size_t pieces_each = 8;

// From this size on, parts are written by non-temporal stores.
constexpr std::size_t usual_non_temporal_from = 4 * 1024 * 1024;

std::atomic<std::size_t> non_temporal_from{non_temporal_is_fast() ? usual_non_temporal_from
                                                                  : SIZE_MAX};

struct Task {
    const Job* job;
    Piece piece;
};

std::size_t bytes_of(const Split& split) {
    std::size_t bytes = split.width;
    for (const Dimension& dimension : split.dimensions) bytes *= dimension.extent;
    return bytes;
}

}  // namespace

void set_non_temporal_from(std::size_t bytes) { non_temporal_from.store(bytes); }

void copy_parts(const Kernels& kernels, const Split& split) {
    const std::size_t bytes = bytes_of(split);
    const auto jobs = make_jobs(split);
    const Mode mode{kernels, bytes >= non_temporal_from.load(std::memory_order_relaxed)};
    if (bytes < worth_a_thread || threads() == 1) {
        for (const auto& job : jobs) job->run(mode, job->whole());
        if (mode.non_temporal) kernels.finish();
        return;
    }
    const std::size_t share = bytes / (threads() * pieces_each);
    const std::size_t piece_bytes = std::clamp(share, smallest_piece, largest_piece);
    std::vector<Task> tasks;
    for (const auto& job : jobs) {
        for (const Piece& piece : job->pieces(piece_bytes)) tasks.push_back({job.get(), piece});
    }
    run_parallel(tasks.size(), [&](std::size_t index) {
        tasks[index].job->run(mode, tasks[index].piece);
        if (mode.non_temporal) kernels.finish();
    });
}

}  // namespace tensorsplit
