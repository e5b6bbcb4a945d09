/* SPDX-License-Identifier: Apache-2.0 */
/* The place is shown below the message, whoever reads it. */
/* flags: -e */
/* status: 1 */
/* stderr: line 10: failed to resolve execnam: Unknown variable name
  	trace(execnam);
  	      ^~~~~~~ did you mean 'execname'? */
BEGIN
{	x = 1;
	trace(execnam);
	exit(0);
}
