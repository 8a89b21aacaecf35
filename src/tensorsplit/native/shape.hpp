// Dimensions: extents and strides.
#pragma once

#include <cstddef>
#include <vector>

namespace tensorsplit {

struct Dimension {
    std::size_t extent;
    std::ptrdiff_t stride;  // bytes from an element of the source to the next
};

using Shape = std::vector<Dimension>;

std::size_t count_elements(const Shape& shape);

// The same elements in the same order in as few dimensions as possible.
Shape merge(const Dimension* begin, const Dimension* end);

// The offset in bytes of element number `index` in C order.
std::ptrdiff_t offset_of(const Shape& shape, std::size_t index);

}  // namespace tensorsplit
