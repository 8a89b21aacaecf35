// Copying strips one after the other, by vectors that may hold more than a strip: what they hold
// besides it is overwritten by the strips that follow. Included by the instruction-set specific
// files only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels.hpp"
#include "lines.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

// For processors that can't shuffle the bytes of a vector.
struct PlainBytes {
    struct type {
        char bytes[16];
    };
    static constexpr bool can_shuffle = false;

    static type load(const void* from) {
        type value;
        std::memcpy(value.bytes, from, 16);
        return value;
    }

    static void store(char* to, const type& value) { std::memcpy(to, value.bytes, 16); }
    static type shuffle(const type& bytes, const type&) { return bytes; }
};

// How the strips of a column are packed: `each` at a time, which lie within 16 bytes.
struct Packing {
    std::size_t each;
    std::ptrdiff_t from;  // bytes from the first of these strips to the lowest
    alignas(16) std::uint8_t places[16];
};

constexpr std::size_t most_packed = 64;    // columns at a time
constexpr std::size_t widest_vector = 64;  // bytes read and written for a strip
constexpr std::size_t rows_per_turn = 4;   // loops are unrolled
constexpr std::size_t widest_shuffled = 16;

template <class Bytes>
Packing packing_of(const Column& column, std::ptrdiff_t stride) {
    Packing packing{1, 0, {}};
    const auto apart = static_cast<std::size_t>(std::abs(stride));
    const std::size_t width = column.width;
    if (!Bytes::can_shuffle || apart == 0 || width + apart > widest_shuffled) return packing;
    const std::size_t each =
        std::min((widest_shuffled - width) / apart + 1, widest_shuffled / width);
    packing.each = each;
    if (stride < 0) packing.from = static_cast<std::ptrdiff_t>(each - 1) * stride;
    for (std::size_t i = 0; i < each * width; ++i) {
        const std::size_t strip = stride < 0 ? each - 1 - i / width : i / width;
        packing.places[i] = static_cast<std::uint8_t>(strip * apart + i % width);
    }
    return packing;
}

// Call `copy(from, to)` for so many groups of strips.
template <class Copy>
void for_each_group(const char* from, std::ptrdiff_t apart, char* to, std::size_t bytes,
                    std::size_t groups, Copy copy) {
    for (; groups >= rows_per_turn; groups -= rows_per_turn) {
        for (std::size_t i = 0; i < rows_per_turn; ++i) {
            copy(from, to);
            from += apart;
            to += bytes;
        }
    }
    for (; groups != 0; --groups) {
        copy(from, to);
        from += apart;
        to += bytes;
    }
}

// The rows must be those of `packable`.
template <class Bytes>
void pack(const Rows& rows, const Column& column, const Packing& packing) {
    const char* from = source_of(rows, 0, column) + packing.from;
    char* to = target_of(rows, 0, column);
    const std::size_t width = column.width;
    const auto run = [&](auto copy) {
        for_each_group(from, rows.stride, to, width, rows.count, copy);
    };
    if (width > widest_vector) {
        copy_column(rows, column);
    } else if (packing.each > 1) {
        const auto apart = static_cast<std::ptrdiff_t>(packing.each) * rows.stride;
        const std::size_t groups = (rows.count + packing.each - 1) / packing.each;
        const auto places = Bytes::load(packing.places);
        for_each_group(from, apart, to, packing.each * width, groups,
                       [places](const char* strips, char* packed) {
                           Bytes::store(packed, Bytes::shuffle(Bytes::load(strips), places));
                       });
    } else if (width <= 16) {
        run([](const char* strip, char* packed) { std::memcpy(packed, strip, 16); });
    } else if (width <= 32) {
        run([](const char* strip, char* packed) { std::memcpy(packed, strip, 32); });
    } else {
        run([](const char* strip, char* packed) { std::memcpy(packed, strip, 64); });
    }
}

// The rows whose strips can be read and written by the widest vectors: what follows them is in the
// source, and at the destination it is written later.
inline Rows packable(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    const Column* last = columns;
    std::size_t narrowest = widest_vector;
    for (std::size_t i = 0; i < count; ++i) {
        if (columns[i].from > last->from) last = columns + i;
        narrowest = std::min(narrowest, columns[i].width);
    }
    const std::size_t reserve = (widest_vector + narrowest - 1) / narrowest;
    if (rows.count <= reserve) return some_of(rows, 0, 0);
    return readable(some_of(rows, 0, rows.count - reserve), *last, end, widest_vector, 1);
}

// Copy the columns in their order for so few rows that these stay in the first-level cache. No byte
// of the source lies at `end` or beyond.
template <class Bytes>
void pack_columns(const Rows& rows, const Column* columns, std::size_t count, const char* end,
                  std::size_t together) {
    Packing packings[most_packed];
    for (; count > 0;) {
        const std::size_t some = std::min(count, most_packed);
        for (std::size_t i = 0; i < some; ++i) {
            packings[i] = packing_of<Bytes>(columns[i], rows.stride);
        }
        const Rows inside = packable(rows, columns, some, end);
        for (std::size_t row = 0; row < inside.count; row += together) {
            const Rows near = some_of(inside, row, std::min(together, inside.count - row));
            for (std::size_t i = 0; i < some; ++i) pack<Bytes>(near, columns[i], packings[i]);
        }
        copy_others(rows, inside, columns, some);
        columns += some;
        count -= some;
    }
}

}  // namespace
}  // namespace tensorsplit
