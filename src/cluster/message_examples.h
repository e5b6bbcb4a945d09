// SPDX-License-Identifier: Apache-2.0
// A message of each kind with something in every member, for tests and the fuzzer.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/chunks.h"
#include "cluster/message.h"

namespace clew::cluster {

inline Incarnation example_incarnation(uint8_t first) {
  Incarnation incarnation;
  incarnation.boot_id[0] = std::byte{first};
  incarnation.boot_id[15] = std::byte{0xF0};
  incarnation.start_ns = 123'456'789'012;
  return incarnation;
}

inline Chunk example_chunk() {
  return {.index = 1,
          .count = 3,
          .whole_bytes = 10,
          .whole_crc = 0x1234'5678,
          .bytes = {std::byte{1}, std::byte{0}, std::byte{0xFF}}};
}

inline Signature example_signature() {
  Signature signature = {.issued_ns = 1'700'000'000'000'000'000,
                         .expires_ns = 1'700'000'300'000'000'000};
  signature.key[31] = std::byte{7};
  signature.rest[0] = std::byte{8};
  signature.bytes[63] = std::byte{9};
  return signature;
}

inline Control example_control() {
  Control control = {.want_revision = 7, .time_ns = -5, .query = "q1", .revision = 2};
  control.is_wanted = true;
  control.digest[31] = std::byte{9};
  control.text = "from e in calls select count()";
  control.name_patterns = {"nginx"};
  control.labels = {{"rack", ""}, {"zone", "a"}};
  control.epoch_ns = 1'700'000'000'000'000'000;
  control.width_ns = 1'000'000'000;
  control.gives = Gives::AtEnd;
  control.lease_ns = 30'000'000'000;
  control.limits = {.keys_max = 1, .partial_bytes_max = 2, .spill_bytes_max = 3};
  control.incarnation = example_incarnation(2);
  control.unknown = {"q2"};
  control.safe = {{.query = "q1", .revision = 2, .incarnation = example_incarnation(1), .mark = -1},
                  {.query = "q2", .mark = 41}};
  control.signature = example_signature();
  return control;
}

inline Beat example_beat() {
  Beat beat = {.node = "n-1", .incarnation = example_incarnation(1), .version = "0.1.0"};
  beat.labels = {{"zone", "b"}};
  beat.want_revision = 7;
  beat.spill_bytes = 1 << 30;
  beat.clock_offset_ns = -12;
  beat.queries = {{.query = "q1", .revision = 2, .state = NodeState::Armed},
                  {.query = "q2", .revision = 3, .state = NodeState::Refused, .closed = -3}};
  beat.queries[0].schema[0] = std::byte{3};
  beat.queries[0].answered = "from e in calls";
  beat.queries[1].reason = "no function 'f'";
  beat.queries[1].merged = {{.first = 6, .last = 8}, {.first = 9, .last = 10}};
  beat.queries[1].last = -3;
  beat.queries[1].safe = -9;
  beat.queries[1].lost = {{.first = -2, .last = -2}, {.first = 0, .last = 5}};
  return beat;
}

inline Partial example_partial() {
  return {.query = "q1",
          .revision = 2,
          .node = "n-1",
          .incarnation = example_incarnation(1),
          .pane = 41,
          .previous = 39,
          .safe = 37,
          .table = example_chunk()};
}

inline Spilled example_spilled() {
  return {.tenant = "shop",
          .node = "n-1",
          .query = "q1",
          .revision = 2,
          .incarnation = example_incarnation(1),
          .pane = 41,
          .table = {std::byte{7}, std::byte{0}}};
}

inline Again example_again() {
  return {
      .query = "q1", .revision = 2, .panes = {{.first = 1, .last = 1}, {.first = 3, .last = 9}}};
}

inline RowUpdate example_row() {
  return {.query = "q1",
          .revision = 2,
          .root = "r_1",
          .number = 17,
          .pane = 41,
          .version = 3,
          .is_final = true,
          .lacks_nodes = true,
          .table = example_chunk()};
}

inline Want example_want() {
  return {.revision = 7, .queries = {{.query = "q1", .revision = 2}, {.query = "q2"}}};
}

inline Ask example_ask() {
  return {.query = "q1",
          .text = "from e in calls select count()",
          .name_patterns = {"redis-*", ""},
          .labels = {{"zone", "a"}},
          .width_ns = 5,
          .gives = Gives::Windows,
          .root = "r_1",
          .has_rows = 3,
          .signature = example_signature()};
}

inline Status example_status() {
  return {.query = "q1",
          .phase = Phase::Failed,
          .reason = "no",
          .answered = "from e in calls",
          .nodes = 3,
          .meant = 2,
          .armed = 1,
          .silent = 2,
          .silent_nodes = {"n-2", "n-3"},
          .labels = {"zone=a"},
          .refusals = {{.reason = "no function 'f'", .node = "n-1", .nodes = 2}},
          .lost = {"what node a has"},
          .gaps = {{.node = "b", .panes = {.first = 3, .last = 4}}},
          .root = "r_1",
          .first_row = 4,
          .rows = 9};
}

inline Read example_read() {
  return {.reader = "r1", .request = 5, .query = "q1", .first = 2, .last = 9};
}

inline AnswerPart example_part() {
  return {.want = example_control(),
          .phase = Phase::Running,
          .answered = "from e in calls",
          .given = {.first = 3, .last = 9},
          .begun = 2,
          .panes = {{.pane = 3, .version = 2, .table = {std::byte{1}}}, {.pane = 5}},
          .is_last = false,
          .total = {std::byte{2}},
          .losses = {std::byte{3}, std::byte{0}}};
}

inline Marks example_marks() {
  return {
      .revision = 2,
      .given = 41,
      .members = {{.node = "n-1", .incarnation = example_incarnation(1), .first = 3, .mark = 40},
                  {.node = "n-2"}}};
}

// Calls `use` with each.
template <typename Use>
void for_each_example(const Use& use) {
  const auto all = std::make_tuple(
      example_control(), example_beat(), example_partial(), example_again(), example_row(),
      example_want(), Leader{.root = std::string(64, 'r')}, example_ask(), example_status(),
      example_spilled(), example_read(), Found{.request = 5, .answer = example_chunk()},
      AnswerList{{{.query = "q1", .phase = Phase::Done, .text = "from"},
                  {.query = "q2",
                   .is_standing = true,
                   .intervals = 7,
                   .begun_ns = 5,
                   .given_ns = 12,
                   .refused = "no function"}}},
      example_part(), example_marks());
  std::apply([&](const auto&... message) { (use(message), ...); }, all);
}

}  // namespace clew::cluster
