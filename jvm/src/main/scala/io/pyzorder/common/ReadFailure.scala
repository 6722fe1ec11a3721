package io.pyzorder.common

import scala.util.control.NonFatal

/**
 * Matches a failure to read a file that may come from an untrusted writer. Unlike NonFatal, it also
 * matches errors that the contents of such a file can cause: deep nesting can overflow the stack, a
 * length in the file can demand more memory than is available, and a name in the file can refer to
 * a class that cannot be linked. Such an error affects only that file, so the query continues
 * without the file.
 */
private[pyzorder] object ReadFailure {

  def unapply(failure: Throwable): Option[Throwable] = failure match {
    case NonFatal(_) => Some(failure)
    case _: StackOverflowError | _: OutOfMemoryError | _: LinkageError => Some(failure)
    case _ => None
  }
}
