// Copying all columns of some rows. Included by the instruction-set specific files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels.hpp"
#include "pack.hpp"
#include "stream.hpp"
#include "strips.hpp"
#include "transpose.hpp"

namespace tensorsplit {
namespace {

// Every column reads the same rows, so rows are copied in blocks that stay in the second-level
// cache from column to column.
constexpr std::size_t block_bytes = 256 * 1024;
constexpr std::size_t fewest_rows = 64;

inline std::size_t row_bytes(const Column* columns, std::size_t count) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += columns[i].width;
    return bytes;
}

inline std::size_t rows_of_block(const Column* columns, std::size_t count) {
    const std::size_t rows = block_bytes / row_bytes(columns, count);
    return rows < fewest_rows ? fewest_rows : rows;
}

// Strips of different widths are copied column by column for so many rows that they stay in the
// first-level cache.
constexpr std::size_t near_bytes = 16 * 1024;
constexpr std::size_t fewest_near_rows = 16;

inline std::size_t near_rows(const Column* columns, std::size_t count) {
    const std::size_t rows = near_bytes / row_bytes(columns, count);
    return rows < 2 * fewest_near_rows ? fewest_near_rows : rows / 32 * 32;
}

template <class Match>
std::size_t count_while(const Column* columns, std::size_t count, Match match) {
    std::size_t found = 0;
    while (found < count && match(columns[found])) ++found;
    return found;
}

template <class Isa>
void copy_near(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    const std::size_t width = columns->width, together = near_rows(columns, count);
    if (count == 1 && rows.stride == -static_cast<std::ptrdiff_t>(width) &&
        (width == 4 || width == 8)) {
        return copy_column(rows, *columns);  // which the compiler vectorises
    }
    const auto is_packed = [](const Column& column) { return column.step == column.width; };
    if (rows.count >= fewest_near_rows && count_while(columns, count, is_packed) == count) {
        return pack_columns<typename Isa::Vector>(rows, columns, count, end, together);
    }
    for (std::size_t row = 0; row < rows.count; row += together) {
        const Rows some = some_of(rows, row, std::min(together, rows.count - row));
        for (std::size_t i = 0; i < count; ++i) copy_column(some, columns[i]);
    }
}

// From this width on, libc copies a strip at least as fast. For shorter ones, what it does before
// and after its own loop takes up to half as long as the copy.
constexpr std::size_t left_to_libc = 4096;

// A wide strip, four registers at a time; the last four overlap those before them.
template <class Vector>
void copy_wide_strip(const char* from, char* to, std::size_t width) {
    constexpr std::size_t together = 4 * Vector::size;
    if (width >= left_to_libc) {
        std::memcpy(to, from, width);
        return;
    }
    for (std::size_t at = 0; at < width - together; at += together) {
        copy_bytes<Vector, together>(from + at, to + at);
    }
    const std::size_t last = width - together;
    copy_bytes<Vector, together>(from + last, to + last);
}

// Row by row, which reads the source from front to back.
template <class Vector>
void copy_wide(const Rows& rows, const Column* columns, std::size_t count) {
    for (std::size_t row = 0; row < rows.count; ++row) {
        for (std::size_t i = 0; i < count; ++i) {
            const Column& column = columns[i];
            copy_wide_strip<Vector>(source_of(rows, row, column), target_of(rows, row, column),
                                    column.width);
        }
    }
}

// Copy some of the first columns, which are not wide, and return how many. `Isa` has a Vector for
// transposes and to pack the others, and `try_few` for columns that are too few for a transpose to
// be fastest. No byte of the source lies at `end` or beyond.
template <class Isa>
std::size_t copy_narrow(const Rows& rows, const Column* columns, std::size_t count, const char* end,
                        Stores stores) {
    const auto count_narrow = [&](std::size_t first) {
        const bool narrow = columns[first].width < medium;
        return narrow ? count_alike(columns + first, count - first) : 0;
    };
    const std::size_t alike = count_narrow(0);
    const auto transpose = stores == Stores::prefetched
                               ? try_transpose<typename Isa::Vector, Stores::prefetched>
                               : try_transpose<typename Isa::Vector, Stores::plain>;
    if (alike != 0 && (Isa::template try_few<Stores::plain>(rows, columns, alike, end) ||
                       transpose(rows, columns, alike, end))) {
        return alike;
    }
    // Together with the columns after them, up to the next that are enough for transposes.
    std::size_t others = std::max<std::size_t>(alike, 1);
    while (others < count && columns[others].width < wide) {
        const std::size_t next = count_narrow(others);
        if (next >= enough) break;
        others += std::max<std::size_t>(next, 1);
    }
    copy_near<Isa>(rows, columns, others, end);
    return others;
}

template <class Isa>
void copy_block(const Rows& rows, const Column* columns, std::size_t count, const char* end,
                Stores stores) {
    const auto is_wide = [](const Column& column) { return column.width >= wide; };
    for (std::size_t done = 0; done < count;) {
        const Column* column = columns + done;
        const std::size_t left = count - done;
        if (const std::size_t found = count_while(column, left, is_wide)) {
            copy_wide<typename Isa::Vector>(rows, column, found);
            done += found;
        } else {
            done += copy_narrow<Isa>(rows, column, left, end, stores);
        }
    }
}

inline const char* end_of_source(const Rows& rows, const Column* columns, std::size_t count) {
    const char* end = nullptr;
    const std::size_t highest = rows.stride > 0 ? rows.count - 1 : 0;
    for (std::size_t i = 0; i < count; ++i) {
        const char* strip = source_of(rows, highest, columns[i]) + columns[i].width;
        if (end == nullptr || strip > end) end = strip;
    }
    return end;
}

template <class Isa>
void copy_through_cache(const Rows& rows, const Column* columns, std::size_t count, const char* end,
                        Stores stores) {
    const std::size_t block = rows_of_block(columns, count);
    for (std::size_t row = 0; row < rows.count;) {
        // A remainder that is too short for a block of its own is added to the last block.
        const std::size_t left = rows.count - row;
        const std::size_t taken = left < 2 * block ? left : block;
        copy_block<Isa>(some_of(rows, row, taken), columns, count, end, stores);
        row += taken;
    }
}

// Copy some of the first columns directly to whole cache lines, and return how many: columns that
// are narrow and alike, if the lines of all of them begin with the same row.
template <class Isa>
std::size_t stream_narrow(const Rows& rows, const Column* columns, std::size_t count,
                          const char* end) {
    const std::size_t width = columns->width;
    if (line % width != 0) return 0;
    const std::size_t alike = count_alike(columns, count);
    const auto is_parallel = [columns](const Column& column) {
        return offset_in_line(column.to) == offset_in_line(columns->to);
    };
    const std::size_t head = (line - offset_in_line(target_of(rows, 0, *columns))) % line;
    if (alike == 0 || head % width != 0 || rows.count * width < head + line ||
        count_while(columns, alike, is_parallel) != alike) {
        return 0;
    }
    const std::size_t lines = (rows.count * width - head) / line;
    const Rows inside = some_of(rows, head / width, lines * (line / width));
    constexpr Stores stores = Stores::non_temporal;
    if (!Isa::template try_few<stores>(inside, columns, alike, end) &&
        !try_transpose<typename Isa::Vector, stores>(inside, columns, alike, end)) {
        return 0;
    }
    copy_others(rows, inside, columns, alike);
    return alike;
}

// Up to this many columns of single bytes are written by ordinary stores: staging would copy them
// twice, which takes longer than fetching the lines that they are written to.
constexpr std::size_t few_bytes = 4;

template <class Isa>
void copy_non_temporal(const Rows& rows, const Column* columns, std::size_t count,
                       const char* end) {
    using Vector = typename Isa::Vector;
    const auto copy = [end](const Rows& some, const Column* staged, std::size_t number) {
        copy_through_cache<Isa>(some, staged, number, end, Stores::plain);
    };
    const auto is_wide = [](const Column& column) { return column.width >= widest_staged; };
    const auto is_byte = [](const Column& column) { return column.width == 1 && column.step == 1; };
    if (count == 1 && columns->width < medium && can_be_staged(*columns)) {
        if (stream_narrow<Isa>(rows, columns, 1, end) == 0) {
            stream_column<Vector>(rows, *columns, copy);
        }
        return;
    }
    for (std::size_t done = 0; done < count;) {
        const Column* column = columns + done;
        const std::size_t left = count - done;
        if (const std::size_t found = count_while(column, left, is_wide)) {
            stream_wide<Vector>(rows, column, found);
            done += found;
        } else if (const std::size_t narrow = stream_narrow<Isa>(rows, column, left, end)) {
            done += narrow;
        } else if (const std::size_t bytes = count_while(column, left, is_byte);
                   bytes != 0 && bytes <= few_bytes) {
            copy(rows, column, bytes);
            done += bytes;
        } else if (const std::size_t staged = count_staged(column, left)) {
            Staging<Vector, decltype(copy)>(rows, column, staged, copy);
            done += staged;
        } else {
            const auto is_other = [](const Column& each) {
                return each.width < widest_staged && !can_be_staged(each);
            };
            const std::size_t others = count_while(column, left, is_other);
            copy(rows, column, others);
            done += others;
        }
    }
}

template <class Isa>
void copy_rows(const Rows& rows, const Column* columns, std::size_t count, Stores stores) {
    if (rows.count == 0 || count == 0) return;
    const char* end = end_of_source(rows, columns, count);
    if (stores == Stores::non_temporal && Isa::Vector::can_stream) {
        copy_non_temporal<Isa>(rows, columns, count, end);
    } else {
        copy_through_cache<Isa>(rows, columns, count, end, stores);
    }
}

}  // namespace
}  // namespace tensorsplit
