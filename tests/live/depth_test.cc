// SPDX-License-Identifier: Apache-2.0
// How much of the program's stack a probe uses: what is below the stack pointer of the call, less
// the return address. Measured by paint, without any probe first.
#include <cstdio>

#include <cpuid.h>
#include <gtest/gtest.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

struct Depth {
  uint64_t deepest = 0;
  uint64_t usual = 0;
};

Depth depth_with(const std::string& query) {
  Victim victim("painted");
  victim.run(100);
  const uint64_t alone = victim.counts().at("deepest");
  Tracer tracer = Tracer::attach(victim.pid(), query);
  victim.run(1000);
  const Numbers found = victim.counts();
  EXPECT_EQ(tracer.finish().status, 0) << query;
  return {found.at("deepest") - alone, found.at("usual") - alone};
}

const std::string kEntry = "from e in entry(\"painted!touched\") ";
const std::string kReturn = "from e in return(\"painted!touched\") ";

// Also at the first hit, when a thread takes a slot, and where accessors insert keys and read
// memory: they are C, see tests runtime_stack and d_runtime_stack.
TEST(Depth, AProbeUses128Bytes) {
  for (const std::string& query :
       {kEntry + "select count()", kEntry + "select sum(e.arg0), max(e.arg0)",
        kReturn + "group by e.entry.arg0 select e.entry.arg0, avg(e.elapsed)",
        kReturn + "select avg(e.elapsed)", kReturn + "select quantize(e.elapsed)",
        kEntry + "select time = e.time, first = e.arg0",
        kEntry + "group by e.arg0 select e.arg0, count()", kEntry + "select str(e.arg1), e.arg0",
        kEntry + "group by str(e.arg1) select str(e.arg1), count()",
        kEntry + "group by e.arg0 / e.arg1 select quantize(e.arg0 % 7)"}) {
    const Depth depth = depth_with(query);
    RecordProperty(query, std::to_string(depth.usual) + ", " + std::to_string(depth.deepest));
    EXPECT_LE(depth.deepest, 128U) << query;
  }
}

// rdtscp (AMD volume 3, CPUID Fn8000_0001_EDX): where it lacks, there is no e.cpu.
bool has_processor_number() {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (d & 1U << 27) != 0;
}

// They call accessors by the doors that save nothing (abi/calling.h).
TEST(Depth, AProbeOfManyPartsUsesNoMore) {
  for (const std::string& query :
       {kReturn + "group by e.entry.arg0 / e.entry.arg1, str(e.entry.arg1) "
                  "select e.entry.arg0 / e.entry.arg1, str(e.entry.arg1), quantize(e.elapsed % 7)",
        kReturn + "where e.elapsed > 5 group by e.entry.arg0, e.entry.arg1, e.entry.arg2 "
                  "select e.entry.arg0, e.entry.arg1, e.entry.arg2, avg(e.elapsed), "
                  "quantize(e.retval)",
        kReturn + "where e.elapsed > e.retval / 3 group by str(e.entry.arg1) "
                  "select str(e.entry.arg1), stddev(e.elapsed), min(e.retval)",
        kReturn + "select e.time, e.elapsed, e.tid, e.cpu, str(e.entry.arg1), "
                  "e.retval % e.entry.arg0",
        kReturn +
            "group by e.tid, e.cpu select e.tid, e.cpu, avg(e.elapsed), topk(e.entry.arg0, 5)",
        kReturn + "select quantile(e.elapsed, .99), distinct(e.entry.arg0), "
                  "topk(e.retval / e.entry.arg0, 5)"}) {
    if (!has_processor_number() && query.find("e.cpu") != std::string::npos) {
      printf("NOT TESTED: %s: this processor does not tell its number\n", query.c_str());
      continue;
    }
    const Depth depth = depth_with(query);
    RecordProperty(query, std::to_string(depth.usual) + ", " + std::to_string(depth.deepest));
    EXPECT_LE(depth.deepest, 128U) << query;
  }
}

// With the 128 bytes that the function may use itself.
TEST(Depth, AProbeThatWalksAStackWithinAFunctionUses550Bytes) {
  const std::string place = "from e in offset(\"painted!touched\", 0) ";
  for (const std::string& query :
       {place + "group by e.ustack select count()", place + "select e.ustack(5), e.arg0"}) {
    const Depth depth = depth_with(query);
    RecordProperty(query, std::to_string(depth.usual) + ", " + std::to_string(depth.deepest));
    EXPECT_LE(depth.deepest, 550U) << query;
    EXPECT_GT(depth.usual, 128U) << query;
  }
}

// The accessor that walks is one deep piece of C.
TEST(Depth, AProbeThatWalksAStackUses450Bytes) {
  for (const std::string& query :
       {kEntry + "group by e.ustack select count()", kEntry + "select e.ustack(5), e.arg0",
        kReturn + "group by e.ustack, str(e.entry.arg1) select count(), avg(e.elapsed)"}) {
    const Depth depth = depth_with(query);
    RecordProperty(query, std::to_string(depth.usual) + ", " + std::to_string(depth.deepest));
    EXPECT_LE(depth.deepest, 450U) << query;
  }
}

}  // namespace
}  // namespace clew::live
