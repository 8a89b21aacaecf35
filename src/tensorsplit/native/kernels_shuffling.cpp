// The kernels for processors that shuffle bytes; compiled with the flags for it.
#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "deinterleave.hpp"
#include "kernels.hpp"
#include "rows.hpp"
#include "shuffle.hpp"
#include "strips.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

struct Shuffling {
    using Vector = tensorsplit::Vector;

    template <bool non_temporal>
    static bool try_few(const Rows& rows, const Column* columns, std::size_t count,
                        const char* end) {
        return try_deinterleave<Vector, non_temporal>(rows, columns, count, end);
    }

    static bool try_odd(const Rows& rows, const Column* columns, std::size_t count,
                        const char* end) {
        if (!Shuffles::fit(rows, *columns) || rows.count < 2 * group) return false;
        if (count == 1 && columns->width % 4 == 0) return false;  // the compiler vectorises that
        thread_local Shuffles shuffles;
        shuffles.prepare(columns->width, rows.stride);
        // Few enough rows for all columns to read them from the first-level cache.
        const auto apart = static_cast<std::size_t>(std::abs(rows.stride));
        const std::size_t together = near_bytes / (group * apart) * group;
        for (std::size_t row = 0; row < rows.count; row += together) {
            const Rows some = some_of(rows, row, std::min(together, rows.count - row));
            for (std::size_t i = 0; i < count; ++i) {
                const Rows inside = readable(some, columns[i], end, shuffles.reach(), group);
                shuffles.copy(source_of(inside, 0, columns[i]), inside.count / group,
                                      target_of(inside, 0, columns[i]));
                copy_others(some, inside, columns + i, 1);
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t group = Shuffles::group;
    static constexpr std::size_t near_bytes = 8 * 1024;
};

}  // namespace

#ifdef __AVX2__
const Kernels shuffling = {"avx2", copy_rows<Shuffling>, Vector::finish_streams};
#else
const Kernels shuffling = {"neon", copy_rows<Shuffling>, Vector::finish_streams};
#endif

}  // namespace tensorsplit
