package io.pyzorder.index.store

import java.lang.ref.SoftReference

/**
 * The bytes of a snapshot, from which a query reads the columns that it references. The bytes are
 * kept in memory as long as the driver has memory to spare. If they have been freed, they are read
 * again when needed.
 *
 * @param read reads and verifies the bytes, or throws
 */
private[index] final class SnapshotBytes(read: () => Array[Byte]) {

  private var kept = new SoftReference[Array[Byte]](null)

  def get: Array[Byte] = synchronized {
    val known = kept.get
    if (known != null) known
    else {
      val bytes = read()
      kept = new SoftReference(bytes)
      bytes
    }
  }
}
