/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 5: first what matched, then that destructive actions are allowed. */
/* flags: -w */
/* processor: 0 */
/* stderr: matched 1 probe
dtrace: allowing destructive actions */
BEGIN
{
	system("true");
	exit(0);
}
/* output:
CPU     ID                    FUNCTION:NAME
  0      1                           :BEGIN 

*/
