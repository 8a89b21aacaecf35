// Cache lines: writing them whole, and prefetching those that are read next. Included by the
// instruction-set specific files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "kernels.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

constexpr std::size_t line = 64;  // bytes of a cache line

// This many lines of a column are written in succession: so memory is written in longer pieces, and
// columns that are a multiple of 4 KiB apart don't evict each other from the first-level cache.
constexpr std::size_t lines_together = 4;

inline std::size_t offset_in_line(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % line;
}

template <class Vector, Stores stores>
void write(char* to, typename Vector::type value) {
    if constexpr (stores == Stores::non_temporal) {
        Vector::stream(to, value);
    } else {
        Vector::store(to, value);
    }
}

// Prefetches what is read next, line by line, while something else is written.
template <class Vector>
class Prefetcher {
  public:
    // `bytes` of each of up to `most` rows, from row `begin` and `column` on.
    Prefetcher(const Rows& rows, std::size_t begin, std::size_t most, const Column& column,
               std::size_t bytes)
        : row_(source_of(rows, begin, column)),
          stride_(rows.stride),
          rows_(std::min(rows.count - begin, most)),
          bytes_(bytes) {
        const auto pitch = static_cast<std::size_t>(std::abs(stride_));
        if (rows_ == 0 || pitch > bytes + line) return;
        // The rows are close: all lines from the first row to the last are read.
        if (stride_ < 0) row_ += static_cast<std::ptrdiff_t>(rows_ - 1) * stride_;
        lines_ = std::max<std::size_t>(pitch / bytes, 1);
        bytes_ = rows_ * pitch;
        rows_ = 1;
    }

    // To be called for each line that is written.
    void next() {
        for (std::size_t i = 0; i < lines_ && rows_ != 0; ++i) {
            Vector::prefetch(row_ + at_);
            at_ += line;
            if (at_ < bytes_) continue;
            at_ = 0;
            row_ += stride_;
            --rows_;
        }
    }

  private:
    const char* row_;
    std::ptrdiff_t stride_;
    std::size_t rows_, bytes_, at_ = 0;
    std::size_t lines_ = 1;  // prefetched for each line written
};

// The rows of which `bytes` bytes from the column on can be read without reaching `end`. Their
// number and the number of rows before them are multiples of `unit`.
inline Rows readable(const Rows& rows, const Column& column, const char* end, std::ptrdiff_t bytes,
                     std::size_t unit) {
    const std::ptrdiff_t room = end - source_of(rows, 0, column) - bytes;
    const std::ptrdiff_t stride = rows.stride;
    std::size_t first = 0, last = rows.count;
    if (stride > 0) {
        last = room < 0 ? 0 : std::min(last, static_cast<std::size_t>(room / stride) + 1);
    } else if (room < 0) {
        first = stride == 0 ? last : static_cast<std::size_t>((-room - stride - 1) / -stride);
        first = std::min(last, (first + unit - 1) / unit * unit);
    }
    return some_of(rows, first, (last - first) / unit * unit);
}

// Copy the rows of `rows` that are not in `inside`.
inline void copy_others(const Rows& rows, const Rows& inside, const Column* columns,
                        std::size_t count) {
    const std::size_t before = inside.first - rows.first, done = before + inside.count;
    const Rows head = some_of(rows, 0, before), tail = some_of(rows, done, rows.count - done);
    for (std::size_t i = 0; i < count; ++i) {
        copy_column(head, columns[i]);
        copy_column(tail, columns[i]);
    }
}

}  // namespace
}  // namespace tensorsplit
