package io.pyzorder.common

/**
 * A function for Spark's tasks that Spark's ClosureCleaner takes as it is, because it is no
 * closure by its class's name. The cleaner would read the class file of the code around a closure,
 * which is out of reach once the class loader was closed (see EagerClasses). What `f` captures must
 * therefore be serializable as it stands.
 */
private[pyzorder] final class TaskFunction[A, B] private (f: A => B)
    extends (A => B) with Serializable {
  override def apply(argument: A): B = f(argument)
}

private[pyzorder] object TaskFunction {
  def apply[A, B](f: A => B): TaskFunction[A, B] = new TaskFunction(f)
}
