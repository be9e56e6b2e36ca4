// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Carries the headers that all tests share, compiled once (cmake/precompiled.cmake).
