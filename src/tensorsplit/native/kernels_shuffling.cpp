// The kernels for processors that shuffle bytes; compiled with the flags for it.
#include <cstddef>

#include "deinterleave.hpp"
#include "interleave.hpp"
#include "kernels.hpp"
#include "rows.hpp"
#include "strips.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

struct Shuffling {
    using Vector = tensorsplit::Vector;

    template <Stores stores>
    static bool try_few(const Rows& rows, const Column* columns, std::size_t count,
                        const char* end) {
        return try_deinterleave<Vector, stores>(rows, columns, count, end);
    }
};

}  // namespace

#ifdef __AVX2__
const Kernels shuffling = {"avx2", copy_rows<Shuffling>, join_rows<Vector>, Vector::finish_streams};
#else
const Kernels shuffling = {"neon", copy_rows<Shuffling>, join_rows<Vector>, Vector::finish_streams};
#endif

}  // namespace tensorsplit
