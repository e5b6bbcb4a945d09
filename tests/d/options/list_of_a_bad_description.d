/* SPDX-License-Identifier: Apache-2.0 */
/* The head of the list, then the error. */
/* flags: -l -xerrtags */
/* status: 1 */
/* stderr: [D_PDESC_INVAL] line 6: invalid probe description "a:b:c:d:e" */
a:b:c:d:e
{
}
/* output:
   ID   PROVIDER            MODULE                          FUNCTION NAME
*/
