// The kernels for every processor; compiled with the compiler's own flags.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "interleave.hpp"
#include "kernels.hpp"
#include "rows.hpp"
#include "strips.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

// All columns of contiguous rows in one pass, with distances known to the compiler, which has
// instructions for some of them.
template <class Element, std::size_t columns>
void deinterleave(const Rows& rows, const Column* to) {
    const char* from = source_of(rows, 0, *to);
    char* places[columns];
    for (std::size_t i = 0; i < columns; ++i) places[i] = target_of(rows, 0, to[i]);
    for (std::size_t row = 0; row < rows.count; ++row) {
        for (std::size_t i = 0; i < columns; ++i) {
            const char* element = from + (row * columns + i) * sizeof(Element);
            std::memcpy(places[i] + row * sizeof(Element), element, sizeof(Element));
        }
    }
}

template <class Element>
bool try_deinterleave(const Rows& rows, const Column* to, std::size_t columns) {
    if (rows.stride != static_cast<std::ptrdiff_t>(columns * sizeof(Element))) return false;
    switch (columns) {
        case 2:
            deinterleave<Element, 2>(rows, to);
            return true;
        case 3:
            deinterleave<Element, 3>(rows, to);
            return true;
        case 4:
            deinterleave<Element, 4>(rows, to);
            return true;
        default:
            return false;
    }
}

struct Baseline {
    using Vector = tensorsplit::Vector;

    template <Stores stores>
    static bool try_few(const Rows& rows, const Column* columns, std::size_t count, const char*) {
        if (stores == Stores::non_temporal) return false;
        switch (columns->width) {
            case 1:
                return try_deinterleave<std::uint8_t>(rows, columns, count);
            case 2:
                return try_deinterleave<std::uint16_t>(rows, columns, count);
            default:
                return false;
        }
    }
};

}  // namespace

const Kernels baseline = {"baseline", copy_rows<Baseline>, join_rows<Vector>,
                          Vector::finish_streams};

}  // namespace tensorsplit
