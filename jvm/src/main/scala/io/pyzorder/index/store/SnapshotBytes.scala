package io.pyzorder.index.store

import java.lang.ref.SoftReference

/**
 * The bytes of a snapshot, of which a query reads the columns it names: kept for as long as the
 * driver has memory to spare, else read again.
 *
 * @param read reads and checks them; throws when that fails
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
