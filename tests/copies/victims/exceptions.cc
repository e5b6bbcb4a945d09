// SPDX-License-Identifier: Apache-2.0
// Exceptions on all ways that they take through frames, and what is seen on the way. Prints what
// happened; the argument names a way that ends the program instead.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#define KEPT __attribute__((noinline, noclone))

namespace {

volatile int changing = 1;  // As only the machine knows.
long sum = 0;

void note(const char* what, long value) {
  sum = sum * 31 + value;
  std::printf("%s %ld\n", what, value);
}

struct Guard {
  explicit Guard(int id) : id(id) {}
  ~Guard() { note("end of", id); }
  int id;
};

struct Base {
  virtual ~Base() = default;
  virtual int kind() const { return 1; }
};
struct Left : virtual Base {
  int kind() const override { return 2; }
};
struct Right : virtual Base {
  int kind() const override { return 3; }
};
struct Both : Left, Right {
  int kind() const override { return 4; }
};

KEPT void throws(int what) {
  const Guard guard(what);
  switch (what % 8) {
    case 0:
      throw what;
    case 1:
      throw std::runtime_error("error " + std::to_string(what));
    case 2:
      throw Both();
    case 3:
      throw "text";
    case 4:
      throw std::vector<int>(static_cast<size_t>(what), what);
    case 5:
      throw Left();
    case 6:
      throw std::bad_alloc();
    default:
      if (changing != 0) throw static_cast<long>(what);
  }
}

// Three frames with something to do, of different sizes.
KEPT int inner(int what) {
  const Guard guard(100 + what);
  std::array<char, 700> room{};
  room[static_cast<size_t>(what)] = static_cast<char>(what);
  throws(what);
  return room[3];
}
KEPT int middle(int what, double factor, const std::string& text) {
  const std::string longer = text + text;
  const double before = factor * what;
  const int result = inner(what);
  return result + static_cast<int>(before) + static_cast<int>(longer.size());
}
KEPT int outer(int what) {
  try {
    const Guard guard(200 + what);
    return middle(what, 1.5 * changing, "a text that is not short");
  } catch (const std::runtime_error& error) {
    return static_cast<int>(std::strlen(error.what()));
  } catch (const Base& base) {
    return base.kind();
  } catch (const char* text) {
    return text[0];
  } catch (int value) {
    if (value > 8) throw;
    return value;
  }
}

KEPT int rethrows(int what) {
  try {
    return outer(what);
  } catch (const std::vector<int>& many) {
    return static_cast<int>(many.size());
  } catch (...) {
    const Guard guard(300 + what);
    try {
      throw;
    } catch (int value) {
      return -value;
    } catch (const std::exception& error) {
      return static_cast<int>(std::strlen(error.what()));
    } catch (long value) {
      std::throw_with_nested(std::logic_error(std::to_string(value)));
    }
  }
}

KEPT void nested() {
  for (int what = 0; what < 24; ++what) {
    try {
      note("caught", rethrows(what));
    } catch (const std::logic_error& error) {
      note(error.what(), what);
      try {
        std::rethrow_if_nested(error);
      } catch (long value) {
        note("nested", value);
      }
    }
  }
}

struct ThrowsAtEnd {
  ~ThrowsAtEnd() noexcept(false) {
    if (std::uncaught_exceptions() == 0) throw 5;
    note("already", std::uncaught_exceptions());
  }
};

KEPT void destructors() {
  try {
    const ThrowsAtEnd end;
    note("body", 1);
  } catch (int value) {
    note("from a destructor", value);
  }
  try {
    const ThrowsAtEnd end;
    throws(1);
  } catch (const std::exception& error) {
    note(error.what(), 2);
  }
}

KEPT int compare(const void* a, const void* b) {
  const int left = *static_cast<const int*>(a);
  const int right = *static_cast<const int*>(b);
  if (left + right == 11) throw std::out_of_range("eleven");
  return left - right;
}

KEPT void through_libc() {
  std::array<int, 9> all = {9, 1, 8, 2, 7, 3, 6, 4, 5};
  try {
    std::qsort(all.data(), all.size(), sizeof(int), compare);
  } catch (const std::exception& error) {
    note(error.what(), 0);
  }
  std::vector<int> many(100);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<int>(i * 37 % 100);
  try {
    std::sort(many.begin(), many.end(), [](int a, int b) {
      if (a + b > 190) throw a + b;
      return a < b;
    });
  } catch (int value) {
    note("sorting", value);
  }
}

KEPT void stored() {
  std::exception_ptr kept;
  const std::function<void(int)> call = [&](int what) {
    try {
      throws(what);
    } catch (...) {
      kept = std::current_exception();
    }
  };
  for (int what = 0; what < 4; ++what) {
    call(what);
    try {
      std::rethrow_exception(kept);
    } catch (const std::exception& error) {
      note(error.what(), what);
    } catch (...) {
      note("something", what);
    }
  }
  const auto owner = std::make_unique<Guard>(400);
  try {
    (void)std::string(3, 'x').at(static_cast<size_t>(7 + changing));
  } catch (const std::out_of_range&) {
    note("at", 7);
  }
  try {
    (void)dynamic_cast<Right&>(*static_cast<Base*>(std::make_unique<Left>().get()));
  } catch (const std::bad_cast&) {
    note("cast", 8);
  }
}

// A loop around a try: from its landing pads control comes back into the hot part.
KEPT void many() {
  long caught = 0;
  for (int i = 0; i < 3000; ++i) {
    try {
      if (i % 3 == 0) throw i;
      if (i % 5 == 0) throw std::runtime_error("five");
    } catch (int value) {
      caught += value;
    } catch (const std::exception&) {
      ++caught;
      continue;
    }
    caught ^= i;
  }
  note("many", caught);
}

KEPT int depth_by_unwinder() {
  int depth = 0;
  _Unwind_Backtrace(
      [](_Unwind_Context*, void* data) {
        ++*static_cast<int*>(data);
        return _URC_NO_REASON;
      },
      &depth);
  return depth;
}

KEPT int recursion(int depth) {
  if (depth > 0) return recursion(depth - 1) + changing - 1;
  std::array<void*, 64> frames{};
  note("backtrace", backtrace(frames.data(), static_cast<int>(frames.size())));
  return depth_by_unwinder();
}

// Frames of a thread that ends without a return.
KEPT void waits(int how) {
  const Guard guard(500 + how);
  try {
    if (how == 0) pthread_exit(reinterpret_cast<void*>(7L));
    if (how == 1) {
      for (;;)
        pause();
    }
    throws(17);
  } catch (const std::exception& error) {
    note(error.what(), how);
  } catch (...) {
    note("passing", how);
    throw;
  }
}

void* in_thread(void* argument) {
  const Guard guard(600);
  pthread_cleanup_push([](void*) { note("cleanup", 0); }, nullptr);
  waits(*static_cast<int*>(argument));
  pthread_cleanup_pop(1);
  return argument;
}

KEPT void threads() {
  for (int how = 0; how < 3; ++how) {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, in_thread, &how) != 0) std::abort();
    if (how == 1) pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    const bool was_cancelled = result == PTHREAD_CANCELED;
    note("thread", was_cancelled ? -1 : (result == &how ? 1 : reinterpret_cast<long>(result)));
  }
}

KEPT void passes_nothing(int what) noexcept {
  const Guard guard(700);
  throws(what);
}

[[noreturn]] void told() {
  std::printf("terminated: %d\n", std::current_exception() != nullptr);
  std::fflush(stdout);
  std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string way = count > 1 ? arguments[1] : "";
  if (way == "uncaught") middle(1, 2, "way");
  if (way == "handler") {
    std::set_terminate(told);
    inner(3);
  }
  if (way == "noexcept") passes_nothing(9);
  if (way == "rethrow") throw;
  nested();
  destructors();
  through_libc();
  stored();
  many();
  note("frames", recursion(20));
  threads();
  std::printf("%ld\n", sum);
  return static_cast<int>(sum & 63);
}
