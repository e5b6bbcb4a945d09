/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 7: of several clauses of one probe the first indents, the last unindents. */
/* flags: -F -c 'taskset -c 0 /bin/sleep 0.01' */
syscall::clock_nanosleep:entry
/pid == $target/
{
	trace(1);
}
syscall::clock_nanosleep:entry
/pid == $target/
{
	trace(2);
}
syscall::clock_nanosleep:return
/pid == $target/
{
	trace(3);
}
syscall::clock_nanosleep:return
/pid == $target/
{
	trace(4);
}
syscall::clock_nanosleep:return
/pid == $target/
{
	trace(5);
}
/* output:
CPU FUNCTION                                 
  0  => clock_nanosleep                                 1
  0   | clock_nanosleep:entry                           2
  0   | clock_nanosleep:return                          3
  0   | clock_nanosleep:return                          4
  0  <= clock_nanosleep                                 5

*/
