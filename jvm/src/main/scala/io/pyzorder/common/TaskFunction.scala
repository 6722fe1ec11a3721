package io.pyzorder.common

/**
 * A function that is used in Spark tasks. Spark's ClosureCleaner leaves it unchanged, because the
 * name of its class does not look like the name of a closure. For a closure, the cleaner would read
 * the class file of the enclosing code, which is impossible once the class loader is closed (see
 * EagerClasses). Since `f` is not cleaned, everything that it captures must be serializable.
 */
private[pyzorder] final class TaskFunction[A, B] private (f: A => B)
    extends (A => B) with Serializable {
  override def apply(argument: A): B = f(argument)
}

private[pyzorder] object TaskFunction {
  def apply[A, B](f: A => B): TaskFunction[A, B] = new TaskFunction(f)
}
