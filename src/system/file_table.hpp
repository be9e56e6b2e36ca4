// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The file tables of threads.
#pragma once

namespace doorbell {

/// Gives the calling thread a copy of the process's file table for itself: its system calls then do not count
/// a file's users up and down. Nothing happens where that is not allowed, and after keep_one_file_table().
void own_file_table();

/// From now on threads keep the process's table: a library in it opens files in one thread and uses them in
/// another, as the drop-in libibverbs does. Any thread.
void keep_one_file_table();

}  // namespace doorbell
