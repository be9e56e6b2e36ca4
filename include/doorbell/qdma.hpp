// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A QDMA card (AMD V80) from a program of your own: a card by its name, buffers, transfers through both
// channels. C programs include doorbell/qdma/slash_qdma.h alone. Host code only.
//
//   qdma::Card card = qdma::Card::open("model");  // named as on the command line
//   qdma::TransferDescriptor both = card.both_channels();
//   const qdma::Buffer buffer = card.create_buffer(64 << 20);
//   const auto result = both.transfer(qdma::Direction::host_to_card, buffer, /*offset*/ 0, qdma::kDdrBase,
//                                     buffer.bytes(), /*deadline_s*/ 10);
//   const int error = result.error;  // 0, or an errno
//
// examples/qdma_stream is a whole program.
#pragma once

#include <doorbell/qdma/card.hpp>
#include <doorbell/qdma/slash_qdma.h>
