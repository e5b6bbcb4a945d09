// SPDX-License-Identifier: Apache-2.0
// The functions of exit_shapes.S, for a program to trace and for tests that run them.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char exit_shapes[];
extern const unsigned char exit_shapes_end[];

// SHAPE(name): the function shape_<name>.
#define CLEW_EXIT_SHAPES(SHAPE) \
  SHAPE(early)                  \
  SHAPE(loop)                   \
  SHAPE(pop)                    \
  SHAPE(count)                  \
  SHAPE(both)                   \
  SHAPE(jump)                   \
  SHAPE(zero)                   \
  SHAPE(frame)                  \
  SHAPE(address) SHAPE(checked) SHAPE(unchecked) SHAPE(padded) SHAPE(behind) SHAPE(target)

#define CLEW_DECLARE_SHAPE(name) long shape_##name(long a, long b);
CLEW_EXIT_SHAPES(CLEW_DECLARE_SHAPE)
#undef CLEW_DECLARE_SHAPE

#ifdef __cplusplus
}
#endif
