// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The second, plainer front of a card server: a folder with the sockets that AMD's programs look for.
#pragma once

#include <string>

#include "qdma/slash/control_socket.hpp"
#include "qdma/slash/hotplug_socket.hpp"
#include "qdma/slash/qdma_socket.hpp"

namespace doorbell::qdma::slash {

class Front {
 public:
  /// Takes the places in the folder, which is made (mode 0700) if it is not there, and then removed at the
  /// end. Throws Error.
  Front(Surroundings around, const std::string& folder);
  /// After the loop's last call.
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;
  /// Takes clients. The loop's thread, once.
  void open();

 private:
  /// A folder that goes with its owner if he has made it.
  struct Folder {
    explicit Folder(const std::string& path);
    ~Folder();
    const std::string path;
    bool made = false;
  };
  const Folder folder_;
  const Surroundings around_;
  QdmaSocket qdma_;
  ControlSocket control_;
  HotplugSocket hotplug_;
  BoundFile bound_[3];  // until open()
};

}  // namespace doorbell::qdma::slash
