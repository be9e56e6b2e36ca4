# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The NVMe controllers of the guest, for run.sh. A controller's name is its serial number, by which scripts inside
# find it (lib.sh). Each is in an IOMMU group of its own.
#   name    what QEMU calls it inside, and the serial number
#   MiB     size of its image: sparse, new in every boot
#   where   root: on the root complex; port: behind a PCIe port of its own, like a disk in a slot
#   nvme    properties of the controller (qemu -device nvme,help)
#   ns      properties of its only namespace (qemu -device nvme-ns,help)
#   block   `image`, or `bad=N`: reads of the image's 512-byte sector N fail
# shellcheck disable=SC2034  # used by run.sh
controllers="
  # name     MiB  where  nvme                     ns                                              block
  n512       512  root   max_ioqpairs=8           -                                               image
  n4096      512  root   max_ioqpairs=8           logical_block_size=4096,physical_block_size=4096  image
  smallmdts  512  root   max_ioqpairs=8,mdts=3    -                                               image
  bigmdts    512  root   max_ioqpairs=8,mdts=9    -                                               image
  fewqueues  512  root   max_ioqpairs=2           -                                               image
  mediaerr    64  root   max_ioqpairs=8           -                                               bad=4096
  victim      64  port   max_ioqpairs=8           -                                               image
"

# controller_arguments IMAGES: makes the images in that folder and fills the array `devices` with QEMU's arguments.
controller_arguments() {
  local images=$1 slots=0 name size where nvme ns block bus
  devices=()
  while read -r name size where nvme ns block; do
    case "$name" in "" | "#") continue ;; esac
    truncate -s "${size}M" "$images/$name"
    # Images are new and thrown away: nothing has to reach a disk.
    local file="driver=raw,node-name=$name,cache.no-flush=on,file.driver=file,file.aio=io_uring,file.filename=$images/$name"
    case "$block" in
      image) ;;
      # event=none with an iotype: the rule applies to what the controller itself asks for.
      bad=*) file="driver=blkdebug,node-name=$name,image.driver=file,image.filename=$images/$name"
             file+=",inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5"
             file+=",inject-error.0.sector=${block#bad=},inject-error.0.once=off" ;;
      *) return 1 ;;
    esac
    bus=pcie.0
    if [ "$where" = port ]; then
      slots=$((slots + 1))
      devices+=(-device "pcie-root-port,id=slot$slots,chassis=$slots,slot=$slots")
      bus=slot$slots
    fi
    [ "$ns" != - ] || ns=
    devices+=(-blockdev "$file" -device "nvme,id=$name-controller,serial=$name,bus=$bus,$nvme"
              -device "nvme-ns,drive=$name,bus=$name-controller${ns:+,$ns}")
  done <<<"$controllers"
  # Memory full of ones as a device: laid over a controller's registers it is what a removed one reads as (nvme_faults.sh).
  head -c 1048576 /dev/zero | tr '\0' '\377' >"$images/ones"
  devices+=(-object "memory-backend-file,id=ones,size=1M,share=on,mem-path=$images/ones" -device ivshmem-plain,memdev=ones)
}
