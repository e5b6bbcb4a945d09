// SPDX-License-Identifier: Apache-2.0
// As steps.c, with exceptions: takes decisions at random, and writes the line of each into a file
// (argument 1) that outlives it. Argument 2: the seed. With one argument alone it ends in the way
// that this names, and the line that is to be shown last has the mark LAST: way.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
#define STEP                                        \
  do {                                              \
    __asm__ volatile("" ::: "memory");              \
    lines[(*count)++ & (kLinesMax - 1)] = __LINE__; \
    __asm__ volatile("" ::: "memory");              \
  } while (0)

namespace {

constexpr uint32_t kLinesMax = 1 << 20;
volatile uint32_t* lines;
volatile uint32_t* count;
uint64_t seed;
volatile int odd;
int* volatile nowhere;  // Null, as only the machine knows.

KEPT unsigned any(unsigned below) {
  STEP;
  seed = seed * 6364136223846793005U + 1442695040888963407U;
  return static_cast<unsigned>(seed >> 33) % below;
}

struct Guard {
  KEPT explicit Guard(int depth) : depth(depth) { STEP; }
  KEPT ~Guard() {
    STEP;
    if (depth & 1) {
      STEP;
      odd += depth;
    }
    STEP;
  }
  int depth;
};

KEPT int leaf(int depth) {
  const unsigned what = any(7);
  if (what == 0) {
    STEP;
    throw depth;
  }
  if (what == 1) {
    STEP;
    throw std::runtime_error("leaf");
  }
  if (what == 2) {
    STEP;
    odd ^= depth;
  }
  STEP;
  return depth;
}

KEPT int order(const void* left, const void* right) {
  STEP;
  const int a = *static_cast<const int*>(left);
  const int b = *static_cast<const int*>(right);
  if (a + b > 170) {
    STEP;
    throw a;
  }
  STEP;
  return a - b;
}

KEPT int sort_some() {
  int values[9];
  for (int& value : values) {
    value = static_cast<int>(any(100));
    STEP;
  }
  std::qsort(values, 9, sizeof *values, order);
  STEP;
  return values[4];
}

KEPT int tree(int depth);

KEPT int guarded(int depth) {
  const Guard guard(depth);
  STEP;
  const int sum = tree(depth - 1);
  STEP;
  return sum + leaf(depth);
}

KEPT int again(int depth) {
  try {
    STEP;
    return guarded(depth);
  } catch (...) {
    STEP;
    odd += depth;
    if (any(3) == 0) {
      STEP;
      return 5;
    }
    STEP;
    throw;
  }
}

KEPT int tree(int depth) {
  STEP;
  int sum = 0;
  while (depth > 0 && any(5) != 0) {
    try {
      const Guard guard(depth);
      STEP;
      switch (any(5)) {
        case 0:
          STEP;
          sum += leaf(depth);
          break;
        case 1:
          STEP;
          sum -= again(depth);
          break;
        case 2:
          STEP;
          sum ^= sort_some();
          break;
        case 3:
          STEP;
          if (any(4) == 0) return sum;
          break;
        default:
          STEP;
          sum += tree(depth - 1);
      }
      STEP;
    } catch (int value) {
      STEP;
      sum += value;
      if (any(6) == 0) break;
    } catch (const std::exception& error) {
      STEP;
      sum += error.what()[0];
      if (depth > 3 && any(4) == 0) {
        STEP;
        throw;
      }
    }
    STEP;
  }
  STEP;
  return sum;
}

int decide(const char* path, const char* number) {
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  const size_t size = (kLinesMax + 1) * sizeof *lines;
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) return 2;
  void* const place = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED) return 2;
  count = static_cast<volatile uint32_t*>(place);
  lines = count + 1;
  seed = std::strtoull(number, nullptr, 10) * 977;
  for (int i = 0; i < 400; ++i) {
    try {
      odd += tree(5);
    } catch (const std::exception&) {
      STEP;
    }
  }
  STEP;
  *const_cast<volatile int*>(nowhere) = 1;
  return 3;
}

// ---- ways to end ----

KEPT void throws(int value) {
  odd += value;
  throw std::runtime_error(std::to_string(value));  // LAST: uncaught
}

KEPT void passes(int value) {
  const std::string text(static_cast<size_t>(value), 'x');
  throws(value);
  odd += static_cast<int>(text.size());
}

KEPT void caught(int value) {
  try {
    passes(value);
  } catch (const std::exception& error) {
    odd += error.what()[0];
    *nowhere = odd;  // LAST: caught
  }
}

KEPT void nothing_passes(int value) noexcept {
  passes(value);
}

KEPT void ends(int value) {
  const std::string text(static_cast<size_t>(value), 'y');
  odd += text[1];
  pthread_exit(nullptr);  // The main thread: others go on.
}

struct FaultsAtEnd {
  KEPT ~FaultsAtEnd() {
    odd += 1;
    *nowhere = odd;  // LAST: destructor
  }
};

KEPT void destructor(int value) {
  const FaultsAtEnd end;
  passes(value);
}

void* other(void*) {
  try {
    destructor(31);
  } catch (const std::exception&) {
  }
  return nullptr;
}

int end_by(const char* way) {
  if (std::strcmp(way, "uncaught") == 0) passes(20);
  if (std::strcmp(way, "caught") == 0) caught(21);
  if (std::strcmp(way, "noexcept") == 0) nothing_passes(22);
  if (std::strcmp(way, "destructor") == 0) other(nullptr);
  if (std::strcmp(way, "thread") == 0) {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, other, nullptr) != 0) return 2;
    ends(24);
  }
  return 2;
}

}  // namespace

int main(int words_count, char** words) {
  if (words_count == 2) return end_by(words[1]);
  return words_count == 3 ? decide(words[1], words[2]) : 2;
}
