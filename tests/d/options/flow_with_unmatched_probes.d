/* SPDX-License-Identifier: Apache-2.0 */
/* -Z and -F together: what matches nothing does nothing, and the others are indented. */
/* flags: -Z -F -c /bin/true */
/* processor: 0 */
/* stderr: matched 4 probes */
nosuch:::entry
{
	trace("wrong");
}
BEGIN
{
	trace("begin");
}
syscall::exit_group:entry
/pid == $target/
{
}
syscall::no_such_call_*:return,
syscall::exit_group:entry
/pid == $target/
{
	trace("within");
}
END
{
}
/* output:
CPU FUNCTION                                 
  0 | :BEGIN                                    begin                            
  0  => exit_group                            
  0   | exit_group:entry                        within                           
  0   | :END                                  

*/
