// SPDX-License-Identifier: Apache-2.0
// The system's own log: systemd's journal by its native protocol, with fields that journalctl(1)
// finds (CLEW_SESSION, CLEW_PID, …), else syslog (RFC 3164).
//
// https://systemd.io/JOURNAL_NATIVE_PROTOCOL/: a field is "NAME\n", the size of its value in 8
// bytes, the value, "\n"; so written, no value can end its field. Nobody is waited for: a log that
// is busy does without the entry, which is in the ledger's own file.
#pragma once

#include <string>

#include "ledger/entry.h"
#include "ledger/places.h"

namespace clew::ledger {

void tell_system(const Places& places, const Beginning& beginning);
// `beginning`: of the same session.
void tell_system(const Places& places, const Beginning& beginning, const Ending& ending);

// What is sent, for tests.
[[nodiscard]] std::string journal_datagram(const Beginning& beginning, const Ending* ending);
[[nodiscard]] std::string syslog_datagram(const Beginning& beginning, const Ending* ending);

// "ann", "ann as root", or "uid 1000".
[[nodiscard]] std::string shown_who(const Who& who);
// "redis-server (1234), kernel"; after `most` processes, how many more there are.
[[nodiscard]] std::string shown_targets(const Beginning& beginning, size_t most);

}  // namespace clew::ledger
