// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/states.hpp"

#include <span>

namespace doorbell::roce {

namespace {

// Bits of verbs that change nothing here, and are allowed where verbs allows them.
constexpr u32 kNotifyDrained = 1 << 2, kAlternatePath = 1 << 14, kMigration = 1 << 18, kRateLimit = 1 << 25;

// kXrcTo is XRC's requester, kXrcFrom its responder.
enum Services : u8 {
  kRc = 1,
  kUc = 2,
  kUd = 4,
  kXrcTo = 8,
  kXrcFrom = 16,
  kConnected = kRc | kUc | kXrcTo | kXrcFrom,
  kAll = kConnected | kUd
};

struct Row {
  State from, to;
  u8 services;
  u32 needed, allowed;
};

constexpr u32 kInitConnected = kSetPartition | kSetPort | kSetAccess;
constexpr u32 kInitDatagram = kSetPartition | kSetPort | kSetQueueKey;
constexpr u32 kRtr = kSetPeer | kSetMtu | kSetDestination | kSetReceivePsn;
constexpr u32 kRtrAllowed = kAlternatePath | kSetAccess | kSetPartition;
constexpr u32 kRunning = kSetCurrent | kAlternatePath | kSetAccess | kMigration;
constexpr u32 kDrained = kSetPeer | kAlternatePath | kSetAccess | kSetPartition | kMigration;

using enum State;
constexpr Row kRows[] = {
    {reset, init, kConnected, kInitConnected, 0},
    {reset, init, kUd, kInitDatagram, 0},
    {init, init, kConnected, 0, kInitConnected},
    {init, init, kUd, 0, kInitDatagram},
    {init, rtr, kRc | kXrcFrom, kRtr | kSetReadsAsResponder | kSetRnrTimer, kRtrAllowed},
    {init, rtr, kUc | kXrcTo, kRtr, kRtrAllowed},
    {init, rtr, kUd, 0, kSetPartition | kSetQueueKey},
    {rtr, rts, kRc, kSetTimeout | kSetRetries | kSetRnrRetries | kSetSendPsn | kSetReadsAsRequester,
     kRunning | kSetRnrTimer | kRateLimit},
    {rtr, rts, kXrcTo, kSetTimeout | kSetRetries | kSetRnrRetries | kSetSendPsn | kSetReadsAsRequester,
     kRunning | kRateLimit},
    {rtr, rts, kXrcFrom, kSetTimeout | kSetSendPsn, kRunning | kSetRnrTimer | kRateLimit},
    {rtr, rts, kUc, kSetSendPsn, kRunning | kRateLimit},
    {rtr, rts, kUd, kSetSendPsn, kSetCurrent | kSetQueueKey | kRateLimit},
    {rts, rts, kRc | kXrcFrom, 0, kRunning | kSetRnrTimer | kRateLimit},
    {rts, rts, kUc | kXrcTo, 0, kRunning | kRateLimit},
    {rts, rts, kUd, 0, kSetCurrent | kSetQueueKey | kRateLimit},
    {rts, sqd, kAll, 0, kNotifyDrained},
    {sqd, rts, kRc | kXrcFrom, 0, kRunning | kSetRnrTimer | kRateLimit},
    {sqd, rts, kUc | kXrcTo, 0, kRunning | kRateLimit},
    {sqd, rts, kUd, 0, kSetCurrent | kSetQueueKey | kRateLimit},
    {sqd, sqd, kRc, 0,
     kDrained | kSetPort | kSetTimeout | kSetRetries | kSetRnrRetries | kSetReadsAsRequester |
         kSetReadsAsResponder | kSetRnrTimer},
    {sqd, sqd, kXrcTo, 0,
     kDrained | kSetPort | kSetTimeout | kSetRetries | kSetRnrRetries | kSetReadsAsRequester},
    {sqd, sqd, kXrcFrom, 0, kDrained | kSetPort | kSetTimeout | kSetReadsAsResponder | kSetRnrTimer},
    {sqd, sqd, kUc, 0, kDrained},
    {sqd, sqd, kUd, 0, kSetPartition | kSetQueueKey},
    {sqe, rts, kUc, 0, kSetCurrent | kSetAccess},
    {sqe, rts, kUd, 0, kSetCurrent | kSetQueueKey},
};

u8 mine_of(Service service, Half half) {
  switch (service) {
    case Service::rc:
      return kRc;
    case Service::uc:
      return kUc;
    case Service::ud:
      return kUd;
    case Service::xrc:
      return half == Half::requester ? kXrcTo : kXrcFrom;
  }
  return 0;
}

}  // namespace

bool may_change(Service service, Half half, State from, State to, u32 bits) {
  // These two are reached from everywhere.
  if (to == reset || to == error) return (bits & ~u32{kSetState}) == 0;
  const u8 mine = mine_of(service, half);
  for (const Row& row : kRows) {
    if (row.from != from || row.to != to || (row.services & mine) == 0) continue;
    return (bits & row.needed) == row.needed && (bits & ~(row.needed | row.allowed | kSetState)) == 0;
  }
  return false;
}

}  // namespace doorbell::roce
