#include "shape.hpp"

namespace tensorsplit {

std::size_t count_elements(const Shape& shape) {
    std::size_t count = 1;
    for (const Dimension& dimension : shape) count *= dimension.extent;
    return count;
}

Shape merge(const Dimension* begin, const Dimension* end) {
    Shape merged;
    for (const Dimension* dimension = begin; dimension != end; ++dimension) {
        if (dimension->extent == 1) continue;
        const auto stride = static_cast<std::size_t>(dimension->stride);  // any, of no elements
        const auto span = static_cast<std::ptrdiff_t>(dimension->extent * stride);
        if (!merged.empty() && merged.back().stride == span) {
            merged.back() = {merged.back().extent * dimension->extent, dimension->stride};
        } else {
            merged.push_back(*dimension);
        }
    }
    return merged;
}

std::ptrdiff_t offset_of(const Shape& shape, std::size_t index) {
    std::ptrdiff_t offset = 0;
    for (auto dimension = shape.rbegin(); dimension != shape.rend(); ++dimension) {
        offset += static_cast<std::ptrdiff_t>(index % dimension->extent) * dimension->stride;
        index /= dimension->extent;
    }
    return offset;
}

}  // namespace tensorsplit
