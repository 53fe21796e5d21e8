/* cast.h -- values as whole numbers: without their fraction, and the nearest that the type holds; NaN becomes 0. */
#ifndef MN_CAST_H
#define MN_CAST_H
#include "numerics/fast_math.h"

MN_MATH int32_t mn_float_to_i32(float x) { return x >= 0x1p31f ? INT32_MAX : x >= -0x1p31f ? (int32_t)x : x < 0 ? INT32_MIN : 0; }
MN_MATH uint8_t mn_float_to_u8(float x) { return x >= 255 ? 255 : x >= 0 ? (uint8_t)x : 0; }
MN_MATH uint8_t mn_i32_to_u8(int32_t x) { return x > 255 ? 255 : x >= 0 ? (uint8_t)x : 0; }

#endif
