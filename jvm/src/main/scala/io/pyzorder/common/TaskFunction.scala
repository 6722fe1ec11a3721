package io.pyzorder.common

/**
 * A function for Spark tasks. Spark's ClosureCleaner leaves it alone, because its class name does
 * not look like a closure's. For a closure, the cleaner would read the class file of the enclosing
 * code, which is impossible once the class loader is closed (see EagerClasses). Everything that `f`
 * captures must therefore be serializable without cleaning.
 */
private[pyzorder] final class TaskFunction[A, B] private (f: A => B)
    extends (A => B) with Serializable {
  override def apply(argument: A): B = f(argument)
}

private[pyzorder] object TaskFunction {
  def apply[A, B](f: A => B): TaskFunction[A, B] = new TaskFunction(f)
}
