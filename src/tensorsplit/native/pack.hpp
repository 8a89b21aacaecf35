// Copying strips one after the other, by vectors that may hold more than a strip: what they hold
// besides it is overwritten by the strips that follow. Included by the instruction-set specific
// files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels.hpp"
#include "lines.hpp"
#include "strips.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

// How the strips of a column are packed: `each` at a time, which lie within 16 bytes.
struct Packing {
    std::size_t each;
    std::ptrdiff_t from;  // bytes from the first of these strips to the lowest
    alignas(16) std::uint8_t places[16];
};

constexpr std::size_t most_packed = 64;   // columns at a time
constexpr std::size_t rows_per_turn = 4;  // loops are unrolled
constexpr std::size_t widest_shuffled = 16;

// A strip is read and written in a multiple of this.
constexpr std::size_t packed_unit = 8;

inline Packing packing_of(const Column& column, std::ptrdiff_t stride) {
    Packing packing{1, 0, {}};
    const auto pitch = static_cast<std::size_t>(std::abs(stride));
    const std::size_t width = column.width;
    if (!Bytes::can_shuffle || pitch == 0 || width + pitch > widest_shuffled) return packing;
    const std::size_t each =
        std::min((widest_shuffled - width) / pitch + 1, widest_shuffled / width);
    packing.each = each;
    if (stride < 0) packing.from = static_cast<std::ptrdiff_t>(each - 1) * stride;
    for (std::size_t i = 0; i < each * width; ++i) {
        const std::size_t strip = stride < 0 ? each - 1 - i / width : i / width;
        packing.places[i] = static_cast<std::uint8_t>(strip * pitch + i % width);
    }
    return packing;
}

// Call `copy(from, to)` for so many groups of strips.
template <class Copy>
void for_each_group(const char* from, std::ptrdiff_t pitch, char* to, std::size_t bytes,
                    std::size_t groups, Copy copy) {
    for (; groups >= rows_per_turn; groups -= rows_per_turn) {
        for (std::size_t i = 0; i < rows_per_turn; ++i) {
            copy(from, to);
            from += pitch;
            to += bytes;
        }
    }
    for (; groups != 0; --groups) {
        copy(from, to);
        from += pitch;
        to += bytes;
    }
}

// The rows must be those of `packable`.
template <class Bytes>
void pack_shuffled(const Rows& rows, const Column& column, const Packing& packing) {
    const char* from = source_of(rows, 0, column) + packing.from;
    const auto pitch = static_cast<std::ptrdiff_t>(packing.each) * rows.stride;
    const std::size_t groups = (rows.count + packing.each - 1) / packing.each;
    const auto places = Bytes::load_whole(packing.places);
    for_each_group(from, pitch, target_of(rows, 0, column), packing.each * column.width, groups,
                   [places](const char* strips, char* packed) {
                       Bytes::store(packed, Bytes::shuffle(Bytes::load_whole(strips), places));
                   });
}

template <class Vector, std::size_t bytes>
void copy_bytes(const char* from, char* to) {
    if constexpr (bytes >= Vector::size) {
        Vector::store(to, Vector::load_whole(from));
        copy_bytes<Vector, bytes - Vector::size>(from + Vector::size, to + Vector::size);
    } else {
        std::memcpy(to, from, bytes);
    }
}

template <class Vector, std::size_t bytes>
void pack_strips(const Rows& rows, const Column& column) {
    for_each_group(source_of(rows, 0, column), rows.stride, target_of(rows, 0, column),
                   column.width, rows.count, copy_bytes<Vector, bytes>);
}

template <class Vector, std::size_t... units>
void pack_by_width(const Rows& rows, const Column& column, std::index_sequence<units...>) {
    static constexpr void (*pack[])(
        const Rows&, const Column&) = {pack_strips<Vector, packed_unit*(units + 1)>...};
    pack[(column.width - 1) / packed_unit](rows, column);
}

template <class Vector>
void pack(const Rows& rows, const Column& column, const Packing& packing) {
    if constexpr (Bytes::can_shuffle) {
        if (packing.each > 1) return pack_shuffled<Bytes>(rows, column, packing);
    }
    constexpr auto units = std::make_index_sequence<wide / packed_unit>();
    pack_by_width<Vector>(rows, column, units);
}

// The rows whose strips can be read and written with what is too much: it is in the source, and at
// the destination it is overwritten later.
inline Rows packable(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    std::size_t narrowest = widest_shuffled;
    std::ptrdiff_t read = 0;  // bytes from the first column on
    for (std::size_t i = 0; i < count; ++i) {
        narrowest = std::min(narrowest, columns[i].width);
        const std::size_t bytes = columns[i].width + widest_shuffled - 1;
        read = std::max(read, columns[i].from - columns->from + static_cast<std::ptrdiff_t>(bytes));
    }
    const std::size_t reserve = (widest_shuffled + narrowest - 1) / narrowest;
    if (rows.count <= reserve) return some_of(rows, 0, 0);
    return readable(some_of(rows, 0, rows.count - reserve), *columns, end, read, 1);
}

// Copy the columns in their order for so few rows that these stay in the first-level cache. No byte
// of the source lies at `end` or beyond.
template <class Vector>
void pack_columns(const Rows& rows, const Column* columns, std::size_t count, const char* end,
                  std::size_t together) {
    Packing packings[most_packed];
    for (; count > 0;) {
        const std::size_t some = std::min(count, most_packed);
        for (std::size_t i = 0; i < some; ++i) {
            packings[i] = packing_of(columns[i], rows.stride);
        }
        const Rows inside = packable(rows, columns, some, end);
        for (std::size_t row = 0; row < inside.count; row += together) {
            const Rows near = some_of(inside, row, std::min(together, inside.count - row));
            for (std::size_t i = 0; i < some; ++i) pack<Vector>(near, columns[i], packings[i]);
        }
        copy_others(rows, inside, columns, some);
        columns += some;
        count -= some;
    }
}

}  // namespace
}  // namespace tensorsplit
