/* SPDX-License-Identifier: Apache-2.0 */
/* What says off is off: rows have their heads. */
/* flags: -x quiet=0 */
/* processor: 0 */
/* stderr: matched 1 probe */
BEGIN
{
	exit(0);
}
/* output:
CPU     ID                    FUNCTION:NAME
  0      1                           :BEGIN 

*/
