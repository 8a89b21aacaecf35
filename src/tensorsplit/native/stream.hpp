// Non-temporal stores: large results are evicted from the cache before anyone reads them, and a
// line that is written whole need not be fetched first. Included by the instruction-set specific
// files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "kernels.hpp"
#include "lines.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

// Whole lines, from any address to the start of a line.
template <class Vector>
void stream_lines(char* to, const char* from, std::size_t lines, Prefetcher<Vector>& prefetcher) {
    for (std::size_t i = 0; i < lines; ++i, to += line, from += line) {
        for (std::size_t at = 0; at < line; at += sizeof(typename Vector::type)) {
            Vector::stream(to + at, Vector::load_whole(from + at));
        }
        prefetcher.next();
    }
}

// The staging buffer, in which strips are collected before they are written as lines.
constexpr std::size_t most_staged = 128;      // columns
constexpr std::size_t widest_staged = 1024;   // bytes of a column
constexpr std::size_t most_row_bytes = 4096;  // of all of them
constexpr std::size_t block = 16 * 1024;      // bytes of the rows that are copied at a time, unless
constexpr std::size_t least_burst = 1024;     // that gives too few bytes for each column

struct Stage {
    Column columns[most_staged];
    // The beginning of the unfinished line of each column.
    alignas(line) char carried[most_staged][line];
    alignas(
        line) char strips[block + most_row_bytes + most_staged * (least_burst + 2 * line) + line];
};

inline Stage& stage() {
    thread_local Stage stage;
    return stage;
}

inline bool can_be_staged(const Column& column) {
    return column.step == column.width && column.width < widest_staged;
}

// How many of the first columns are staged together.
inline std::size_t count_staged(const Column* columns, std::size_t count) {
    std::size_t staged = 0, bytes = 0;
    while (staged < count && staged < most_staged && can_be_staged(columns[staged])) {
        bytes += columns[staged].width;
        if (staged != 0 && bytes > most_row_bytes) break;
        ++staged;
    }
    return staged;
}

// Columns that can be staged, some rows at a time. An unfinished line is carried over to the next
// rows: a line that is written in two pieces would be fetched, and written twice.
template <class Vector, class Copy>
class Staging {
  public:
    // Copy them; `copy` copies rows to narrow columns.
    Staging(const Rows& rows, const Column* columns, std::size_t count, Copy copy)
        : rows_(rows), columns_(columns), copy_(copy) {
        std::size_t width = 0;
        for (std::size_t i = 0; i < count; ++i) width += columns[i].width;
        // Where rows are closer than a line, the bytes between them are read as well.
        const std::size_t pitch = static_cast<std::size_t>(std::abs(rows.stride));
        const std::size_t read = std::max(width, std::min(pitch, line));
        const std::size_t together =
            std::max<std::size_t>(std::max(block, count * least_burst) / read, 1);
        for (std::size_t row = 0; row < rows.count; row += together) {
            const std::size_t end = std::min(row + together, rows.count);
            Prefetcher<Vector> prefetcher(rows, end, together, *columns, width);
            for (std::size_t begin = 0; begin < count;) {
                const std::size_t some = count_group(columns + begin, count - begin);
                copy_group(row, end, begin, begin + some, prefetcher);
                begin += some;
            }
        }
    }

  private:
    // Wide columns are staged one by one, to use little of the cache.
    static std::size_t count_group(const Column* columns, std::size_t count) {
        std::size_t narrow = 0, bytes = 0;
        while (narrow < count && columns[narrow].width < medium && bytes < line) {
            bytes += columns[narrow++].width;
        }
        return std::max<std::size_t>(narrow, 1);
    }

    void copy_group(std::size_t row, std::size_t end, std::size_t first, std::size_t last,
                    Prefetcher<Vector>& prefetcher) {
        Column* staged = stage_.columns;
        Rows some = some_of(rows_, row, end - row);
        char* next = stage_.strips;
        for (std::size_t i = first; i < last; ++i) {
            const Column& column = columns_[i];
            // At the same offset in a line as at the destination.
            const std::size_t filled = offset_in_line(target_of(some, 0, column));
            std::memcpy(next, stage_.carried[i], line);
            staged[i] = {column.from, column.width, next + filled, column.width};
            next += (filled + some.count * column.width + line - 1) / line * line;
        }
        some.first = 0;
        if (columns_[first].width >= medium) {
            copy_column(some, staged[first]);
        } else {
            copy_(some, staged + first, last - first);
        }
        for (std::size_t i = first; i < last; ++i) flush(row, end, i, staged[i].to, prefetcher);
    }

    // Write the finished lines of a column, and after the last rows the rest.
    void flush(std::size_t row, std::size_t end, std::size_t i, const char* strips,
               Prefetcher<Vector>& prefetcher) {
        const Column& column = columns_[i];
        char* to = target_of(rows_, row, column);
        std::size_t bytes = (end - row) * column.width;
        const std::size_t filled = offset_in_line(to);
        to -= filled;
        strips -= filled;
        bytes += filled;
        char* begin = target_of(rows_, 0, column);
        if (to < begin && bytes >= line) {  // the rest of this line belongs to others
            const std::size_t before = static_cast<std::size_t>(begin - to);
            std::memcpy(begin, strips + before, line - before);
            to += line;
            strips += line;
            bytes -= line;
        }
        const std::size_t lines = bytes / line, left = bytes % line;
        stream_lines<Vector>(to, strips, lines, prefetcher);
        to += lines * line;
        strips += lines * line;
        if (end == rows_.count) {
            const std::size_t before = to < begin ? static_cast<std::size_t>(begin - to) : 0;
            std::memcpy(to + before, strips + before, left - before);
        } else {
            std::memcpy(stage_.carried[i], strips, line);
        }
    }

    const Rows& rows_;
    const Column* columns_;
    Copy copy_;
    Stage& stage_ = stage();
};

// Contiguous bytes: whole lines, and the bytes before and after them.
template <class Vector>
void stream_bytes(char* to, const char* from, std::size_t bytes, Prefetcher<Vector>& prefetcher) {
    const std::size_t head = std::min((line - offset_in_line(to)) % line, bytes);
    const std::size_t lines = (bytes - head) / line, done = head + lines * line;
    std::memcpy(to, from, head);
    stream_lines<Vector>(to + head, from + head, lines, prefetcher);
    std::memcpy(to + done, from + done, bytes - done);
}

// A single column that can be staged. It may be one of very many short ones, for which setting up
// `Staging` takes too long. `copy` copies rows to columns.
template <class Vector, class Copy>
void stream_column(const Rows& rows, const Column& column, Copy copy) {
    const std::size_t together = block / column.width;
    for (std::size_t row = 0; row < rows.count; row += together) {
        const std::size_t end = std::min(row + together, rows.count);
        Rows some = some_of(rows, row, end - row);
        char* to = target_of(some, 0, column);
        char* strips = stage().strips + offset_in_line(to);
        some.first = 0;
        const Column staged{column.from, column.width, strips, column.width};
        copy(some, &staged, 1);
        Prefetcher<Vector> prefetcher(rows, end, together, column, column.width);
        stream_bytes<Vector>(to, strips, some.count * column.width, prefetcher);
    }
}

// Row by row, columns that are too wide to be staged.
template <class Vector>
void stream_wide(const Rows& rows, const Column* columns, std::size_t count) {
    Prefetcher<Vector> nothing(rows, 0, 0, *columns, 0);
    for (std::size_t row = 0; row < rows.count; ++row) {
        for (std::size_t i = 0; i < count; ++i) {
            stream_bytes<Vector>(target_of(rows, row, columns[i]), source_of(rows, row, columns[i]),
                                 columns[i].width, nothing);
        }
    }
}

}  // namespace
}  // namespace tensorsplit
