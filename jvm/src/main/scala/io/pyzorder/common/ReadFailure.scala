package io.pyzorder.common

import scala.util.control.NonFatal

/**
 * Matches a failure to read a file that others may have written. Unlike NonFatal, it includes the
 * errors that such a file can cause by its contents alone: deep nesting overflows the stack, a
 * length in the file requests more memory than is available, or a name in the file leads to a class
 * that cannot be linked. Such an error concerns only this file, so the query continues without the
 * file.
 */
private[pyzorder] object ReadFailure {

  def unapply(failure: Throwable): Option[Throwable] = failure match {
    case NonFatal(_) => Some(failure)
    case _: StackOverflowError | _: OutOfMemoryError | _: LinkageError => Some(failure)
    case _ => None
  }
}
