# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# Rings, PRPs, pattern and memory; the parts that models are made of; the same code by many lanes.
set(here ${CMAKE_CURRENT_LIST_DIR})
doorbell_test(nvme_test unit ${here}/queue_pair_test.cpp ${here}/prp_test.cpp ${here}/pattern_test.cpp ${here}/pattern_unit_test.cpp ${here}/memory_test.cpp
              ${here}/model_parts_test.cpp ${here}/copy_crew_test.cpp ${here}/io_loop_test.cpp ${here}/loop_guard_test.cpp ${here}/warp_test.cpp ${here}/warp_loop_test.cpp)
doorbell_test(process_parts_test unit ${here}/process_parts_test.cpp)
doorbell_test(nvme_files_test model ${here}/nvme_files_test.cpp)
